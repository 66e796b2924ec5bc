import { parentPort, workerData } from 'node:worker_threads'
import { TooManyPages } from './drawing/sheet.ts'
import type { Answer } from './press.ts'
import { type Job, maxPages, typeset } from './typeset.ts'

/** Worker thread that typesets one document and exits. */
const answer = await typeset(workerData as Job).then(
  (made): Answer => ({ made }),
  (error: unknown): Answer => {
    if (error instanceof TooManyPages) return { declined: `The document has more than ${maxPages} pages.` }
    throw error
  },
)
parentPort?.postMessage(answer, [])
