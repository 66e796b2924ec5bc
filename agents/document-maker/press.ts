import { Worker } from 'node:worker_threads'
import type { Job, Typeset } from './typeset.ts'

export type Answer = { made: Typeset } | { declined: string }

/** Time limit for a document. Typesetting 500 pages takes a few seconds. */
const longestMs = 60_000
const memoryMb = 512

/**
 * Typesets a document in a worker thread, so that a long or hostile document cannot block the process or exhaust its
 * memory, and the memory used by fonts is released.
 *
 * @throws the reason of the signal after it is aborted; Error with a readable message if the thread fails
 */
export async function press(job: Job, signal: AbortSignal): Promise<Answer> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const worker = new Worker(new URL('./typeset-worker.ts', import.meta.url), {
    workerData: job,
    resourceLimits: { maxOldGenerationSizeMb: memoryMb },
    // The worker needs no environment variables.
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
