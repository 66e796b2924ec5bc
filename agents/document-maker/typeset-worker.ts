import { parentPort, workerData } from 'node:worker_threads'
import { TooManyPages } from './drawing/sheet.ts'
import type { Answer } from './press.ts'
import { type Job, maxPages, typeset } from './typeset.ts'

/** Sets one document in a thread of its own, which ends with it. */
const answer = await typeset(workerData as Job).then(
  (made): Answer => ({ made }),
  (error: unknown): Answer => {
    if (error instanceof TooManyPages) return { declined: `The document has more than ${maxPages} pages.` }
    throw error
  },
)
parentPort?.postMessage(answer, [])
