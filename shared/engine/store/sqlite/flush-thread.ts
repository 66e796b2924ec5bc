import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

/** A file of the log, and the positions of the records in it that are to enter the tables. */
export interface FlushOrder {
  file: string
  after: number
  last: number
}

/** The answer of the thread. */
export type FlushOutcome = { error?: string }

/** How long the thread waits for the next order before it ends, because it occupies memory. */
const idleMs = 30_000

/** Whether this process may start threads. An agent in the isolation mode `permission` may not. */
export const threadsAllowed = (): boolean =>
  (process.permission as NodeJS.ProcessPermission | undefined)?.has('worker') ?? true

/** Writes records of the log into the tables in a worker thread, which is started by the first order. */
export class FlushThread implements AsyncDisposable {
  readonly #options: { database: string; id: Uint8Array }
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined

  /**
   * @param options.database the database file
   * @param options.id the identity of the log
   */
  constructor(options: { database: string; id: Uint8Array }) {
    this.#options = options
  }

  /** Resolves once the records are durable in the tables. Only one order may run at a time. @throws Error */
  async flush(order: FlushOrder): Promise<void> {
    clearTimeout(this.#idle)
    this.#worker ??= this.#start()
    const worker = this.#worker
    const ended = new AbortController()
    const end = () => ended.abort(new Error('The thread has ended'))
    worker.once('exit', end)
    worker.ref()
    try {
      const answered = once(worker, 'message', { signal: ended.signal })
      worker.postMessage(order)
      const [{ error }] = (await answered) as [FlushOutcome]
      if (error !== undefined) throw new Error(error)
    } finally {
      worker.off('exit', end)
      worker.unref()
      this.#idle = setTimeout(() => void this[Symbol.asyncDispose](), idleMs).unref()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#idle)
    const worker = this.#worker
    this.#worker = undefined
    await worker?.terminate()
  }

  #start(): Worker {
    const worker = new Worker(new URL('./flush-worker.ts', import.meta.url), {
      name: 'flush',
      workerData: this.#options,
      env: {},
      // The module of the thread is a file, also if the program was passed as text.
      execArgv: process.execArgv.filter((flag) => !flag.startsWith('--input-type')),
    })
    // The order rejects with the error, and the next one starts another thread.
    worker.on('error', () => {})
    worker.once('exit', () => {
      if (this.#worker === worker) this.#worker = undefined
    })
    return worker
  }
}
