import {
  type Context,
  context,
  createTraceState,
  type Span as OtelSpan,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api'
import { parseTraceParent, type TraceContext, writeTraceParent } from '../trace-context.ts'
import type { Span, SpanAttributes, SpanOptions, Tracing } from '../tracing.ts'

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
}

/** Records spans with the tracer of the SDK. */
export class OtlpTracing implements Tracing {
  readonly #tracer: Tracer
  readonly #followsParent: boolean

  /** @param followsParent whether the steps of a trace that is not exported are not exported either */
  constructor(tracer: Tracer, followsParent: boolean) {
    this.#tracer = tracer
    this.#followsParent = followsParent
  }

  start(name: string, { kind = 'internal', parent, attributes, startedAt }: SpanOptions = {}): Span {
    const at = contextOf(parent)
    const outer = trace.getSpan(at)
    // The steps of a trace that is not exported need no spans: they keep the position of their parent.
    if (outer !== undefined && this.#followsParent && !isSampled(outer)) return new RecordedSpan(outer)
    const options = { kind: kinds[kind], ...(startedAt !== undefined && { startTime: new Date(startedAt) }) }
    const span = new RecordedSpan(this.#tracer.startSpan(name, options, at))
    if (attributes !== undefined) span.set(attributes)
    return span
  }

  run<T>(span: Span, run: () => T): T {
    const active = context.active()
    if (!(span instanceof RecordedSpan) || trace.getSpan(active) === span.recorded) return run()
    return context.with(trace.setSpan(active, span.recorded), run)
  }

  current(): Span | undefined {
    const span = trace.getSpan(context.active())
    return span && new RecordedSpan(span)
  }
}

function contextOf(parent: SpanOptions['parent']): Context {
  if (parent === undefined) return context.active()
  if (parent === 'none') return ROOT_CONTEXT
  if (parent instanceof RecordedSpan) return trace.setSpan(ROOT_CONTEXT, parent.recorded)
  if (!('traceparent' in parent)) return ROOT_CONTEXT
  return remoteContext(parent)
}

function remoteContext({ traceparent, tracestate }: TraceContext): Context {
  const read = parseTraceParent(traceparent)
  if (read === undefined) return ROOT_CONTEXT
  const { traceId, spanId, isSampled: sampled } = read
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: sampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  })
}

const isSampled = (span: OtelSpan) => (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0

class RecordedSpan implements Span {
  readonly recorded: OtelSpan

  constructor(recorded: OtelSpan) {
    this.recorded = recorded
  }

  get context(): TraceContext {
    const { traceId, spanId, traceState } = this.recorded.spanContext()
    const traceparent = writeTraceParent({ traceId, spanId, isSampled: isSampled(this.recorded) })
    const tracestate = traceState?.serialize()
    return tracestate === undefined || tracestate === '' ? { traceparent } : { traceparent, tracestate }
  }

  get traceId(): string {
    return this.recorded.spanContext().traceId
  }

  get spanId(): string {
    return this.recorded.spanContext().spanId
  }

  get isRecording(): boolean {
    return this.recorded.isRecording()
  }

  set(attributes: SpanAttributes): void {
    if (!this.recorded.isRecording()) return
    for (const name in attributes) {
      const value = attributes[name]
      if (value === undefined) continue
      this.recorded.setAttribute(name, typeof value === 'object' ? [...value] : value)
    }
  }

  rename(name: string): void {
    if (this.recorded.isRecording()) this.recorded.updateName(name)
  }

  fail(reason: string): void {
    if (!this.recorded.isRecording()) return
    this.recorded.setAttribute('error.type', reason).setStatus({ code: SpanStatusCode.ERROR })
  }

  end(): void {
    if (this.recorded.isRecording()) this.recorded.end()
  }
}
