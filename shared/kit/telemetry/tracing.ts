import type { TraceContext } from './trace-context.ts'

/** Attributes never contain tokens, secrets or texts of callers and agents. Undefined values are left out. */
export type SpanAttributes = Record<string, string | number | boolean | readonly string[] | undefined>

export interface SpanOptions {
  /** Default: `internal`. */
  kind?: 'internal' | 'server' | 'client' | 'producer'
  /** Default: the current span. `none` begins a new trace. */
  parent?: TraceContext | Span | 'none' | undefined
  attributes?: SpanAttributes
  /** When the step began, in milliseconds since 1970. Default: now. */
  startedAt?: number
}

/** A step of a trace. */
export interface Span {
  /** The position that other processes and stored records receive. */
  readonly context: TraceContext
  readonly traceId: string
  readonly spanId: string
  /** Whether the span is exported. Expensive attributes are computed only for such spans. */
  readonly isRecording: boolean
  set(attributes: SpanAttributes): void
  rename(name: string): void
  /** @param reason the name of the error; never its message, which may contain texts */
  fail(reason: string): void
  end(): void
}

/** Records spans. Names are from a small fixed set. */
export interface Tracing {
  start(name: string, options?: SpanOptions): Span
  /** Runs the function with the span as the current one. */
  run<T>(span: Span, run: () => T): T
  current(): Span | undefined
}

let active: Tracing | undefined

/** Returns undefined while traces are not exported, so that callers then do no work for them. */
export function tracing(): Tracing | undefined {
  return active
}

/** Replaces the implementation that the whole process uses. */
export function useTracing(replacement: Tracing | undefined): void {
  active = replacement
}

/** The position of the current step. Undefined outside of a trace and while traces are not exported. */
export function currentTrace(): TraceContext | undefined {
  return active?.current()?.context
}

/** The id of the current trace, for log lines and records. Undefined as for `currentTrace`. */
export function currentTraceId(): string | undefined {
  return active?.current()?.traceId
}

/** The span of a process that exports no traces. */
const noSpan: Span = {
  context: { traceparent: '' },
  traceId: '',
  spanId: '',
  isRecording: false,
  set: () => {},
  rename: () => {},
  fail: () => {},
  end: () => {},
}

/** Runs a step in its own span, which ends with the step. An error that the step throws marks the span as failed. */
export function inSpan<T>(name: string, options: SpanOptions, step: (span: Span) => Promise<T>): Promise<T> {
  return active === undefined ? step(noSpan) : recorded(active, active.start(name, options), step)
}

async function recorded<T>(active: Tracing, span: Span, step: (span: Span) => Promise<T>): Promise<T> {
  try {
    return await active.run(span, () => step(span))
  } catch (error) {
    span.fail(error instanceof Error ? error.name : 'Error')
    throw error
  } finally {
    span.end()
  }
}
