import type { Recorder } from '../recorder.ts'
import type { Client } from '../world.ts'

/** Shared by the steps of this area: a URL that accepts JSON-RPC calls, and two callers. */
export interface Calls {
  recorder: Recorder
  url: string
  alice: Client
  bob: Client
  id: () => string
  /** Records one call by alice. */
  call: (title: string, method: string, params?: unknown, headers?: Record<string, string>) => Promise<string>
  /** Sends a text, waits until its task has ended or paused, and records the response and the task. @returns the id of the task */
  run: (title: string, content: string, more?: object, configuration?: object) => Promise<string>
}
