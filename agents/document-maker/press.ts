import { Worker } from 'node:worker_threads'
import type { Job, Typeset } from './typeset.ts'

export type Answer = { made: Typeset } | { declined: string }

/** A document that takes longer is given up: 500 pages take some seconds. */
const longestMs = 60_000
const memoryMb = 512

/**
 * Sets a document in a thread: a long one holds up no other task, a hostile one can neither keep the process busy nor
 * fill its memory, and what the fonts take is given back.
 *
 * @throws the reason of the signal once that is aborted; Error with a sentence when the thread gives up
 */
export async function press(job: Job, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const worker = new Worker(new URL('./typeset-worker.ts', import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    // Nothing of the agent's surroundings is of use in there.
    env: {},
  })
  const late = setTimeout(() => reject(new Error('Setting the document took too long.')), longestMs)
  const stop = () => reject(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  worker.once('message', resolve)
  worker.once('error', (cause) => reject(new Error('The document cannot be set.', { cause })))
  worker.once('exit', () => reject(new Error('The document cannot be set.')))
  try {
    return await promise
  } finally {
    clearTimeout(late)
    signal.removeEventListener('abort', stop)
    await worker.terminate()
  }
}
