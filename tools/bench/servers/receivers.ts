import { setTimeout as wait } from 'node:timers/promises'
import { cores } from '../support/machine.ts'
import { ServerProcess } from './server-process.ts'

/** Deliveries to the receivers that respond immediately. */
export interface Received {
  urls: string[]
  tasks: number
  /** Number of distinct events. */
  events: number
  repeated: number
  /** Number of events that were not the next one of their task. */
  outOfOrder: number
  /** Number of deliveries to slow receivers. */
  hung: number
  /** Delay between the timestamp of an event and its delivery. */
  p50Ms: number
  p99Ms: number
}

/** Webhook receivers, in a process on the load generator's core. */
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

  /** Forgets the delays measured so far. */
  async forgetTimes(): Promise<void> {
    await fetch(this.#process.address, { method: 'DELETE' })
  }

  /** Resolves after this many events, or after two seconds without an event. */
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
