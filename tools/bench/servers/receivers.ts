import { setTimeout as wait } from 'node:timers/promises'
import { cores } from '../support/machine.ts'
import { ServerProcess } from './server-process.ts'

/** What the receivers that answer have got so far. */
export interface Received {
  urls: string[]
  tasks: number
  /** Each once. */
  events: number
  repeated: number
  /** Events that were not the next number of their task. */
  outOfOrder: number
  /** Posts at receivers that hang. */
  hung: number
  /** From the event's own timestamp to its arrival. */
  p50Ms: number
  p99Ms: number
}

/** Receivers of webhooks in a process on the core of the load. */
export class Receivers implements AsyncDisposable {
  readonly #process: ServerProcess

  private constructor(process: ServerProcess) {
    this.#process = process
  }

  static async start(options: { count: number; hanging: number; hangMs: number }): Promise<Receivers> {
    const { count, hanging, hangMs } = options
    const args = [`${import.meta.dirname}/receivers-process.ts`, ...[count, hanging, hangMs].map(String)]
    return new Receivers(await ServerProcess.start({ args, core: cores.load }))
  }

  async received(): Promise<Received> {
    return (await (await fetch(this.#process.address)).json()) as Received
  }

  /** Times of what came so far count no longer. */
  async forgetTimes(): Promise<void> {
    await fetch(this.#process.address, { method: 'DELETE' })
  }

  /** Once so many events came, or nothing has come for two seconds. */
  async settled(expected: number): Promise<Received> {
    let last = await this.received()
    for (let quiet = 0; last.events < expected && quiet < 20; ) {
      await wait(100)
      const now = await this.received()
      quiet = now.events === last.events ? quiet + 1 : 0
      last = now
    }
    return last
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process[Symbol.asyncDispose]()
  }
}
