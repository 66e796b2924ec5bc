import { setImmediate } from 'node:timers/promises'
import type { Part } from '@parley/wire/model/task'
import type { CollectedOutput, OutputCollector } from '../../author/collect-output.ts'
import type { HandlerContext } from '../../author/context.ts'
import type { Handler } from '../../author/define-agent.ts'
import type { Output, StreamedArtifact } from '../../author/output.ts'

/** The time after which a generator must yield to the event loop. */
const turnMs = 10

/** Receives output while the handler runs. */
interface LiveOutput {
  /** @param artifact absent for a part of the main artifact */
  delta(part: Part, artifact?: StreamedArtifact): void
  progress(parts: Part[]): void
}

/**
 * Runs the handler until it ends, pauses or is aborted, and collects its output.
 * @throws the handler's error, MalformedOutputError, OutputTooLargeError
 */
export async function executeHandler(
  handle: Handler,
  context: HandlerContext,
  collector: OutputCollector,
  live: LiveOutput,
): Promise<CollectedOutput> {
  const take = (output: Output): boolean => {
    const taken = collector.take(output)
    if (taken === 'end') return true
    if (taken?.kind === 'delta') live.delta(taken.part, taken.artifact)
    if (taken?.kind === 'progress') live.progress(taken.parts)
    return false
  }
  const returned = await handle(context)
  if (typeof returned !== 'string' && isIterable(returned)) await takeAll(returned, take, context.signal)
  else take(returned)
  return collector.result()
}

type Outputs = AsyncIterable<Output> | Iterable<Output>

async function takeAll(
  outputs: Outputs,
  take: (output: Output) => boolean,
  signal: AbortSignal,
): Promise<void> {
  const iterator: AsyncIterator<Output> | Iterator<Output> =
    Symbol.asyncIterator in outputs ? outputs[Symbol.asyncIterator]() : outputs[Symbol.iterator]()
  let ended = false
  let turnBegan = performance.now()
  try {
    while (!signal.aborted) {
      const step: IteratorResult<Output, Output> = await iterator.next()
      ended = step.done === true
      const paused = take(step.value)
      if (ended || paused) return
      if (performance.now() - turnBegan < turnMs) continue
      // A generator that never waits would block every other task.
      await setImmediate()
      turnBegan = performance.now()
    }
  } finally {
    if (!ended) await iterator.return?.()
  }
}

function isIterable(value: unknown): value is Outputs {
  if (typeof value !== 'object' || value === null) return false
  return Symbol.asyncIterator in value || Symbol.iterator in value
}
