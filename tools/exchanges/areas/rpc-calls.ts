import type { Recorder } from '../recorder.ts'
import type { Client } from '../world.ts'

/** What the steps of this area share: one address that takes JSON-RPC calls, and two callers. */
export interface Calls {
  recorder: Recorder
  url: string
  alice: Client
  bob: Client
  id: () => string
  /** Records one call of alice. */
  call: (title: string, method: string, params?: unknown, headers?: Record<string, string>) => Promise<string>
  /** Sends a text, waits until its task is settled, records the answer and the task. @returns the id of the task */
  run: (title: string, content: string, more?: object, configuration?: object) => Promise<string>
}
