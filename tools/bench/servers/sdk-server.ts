import { randomUUID } from 'node:crypto'
import { httpRequest, type Load } from '../support/load.ts'
import { cores, type Placement } from '../support/machine.ts'
import { ServerProcess } from './server-process.ts'

/** A running official A2A server. */
export class SdkServer implements AsyncDisposable {
  readonly server: ServerProcess

  private constructor(server: ServerProcess) {
    this.server = server
  }

  static async start(placement: Placement = 'pinned'): Promise<SdkServer> {
    const args = [`${import.meta.dirname}/sdk-process.ts`]
    const core = placement === 'free' ? 'any' : cores.server
    return new SdkServer(await ServerProcess.start({ args, core }))
  }

  /** @throws Error if fewer tasks were completed */
  async waitForCompleted(expected: number): Promise<void> {
    const completed = Number(await (await fetch(`${this.server.address}/completed`)).text())
    if (completed !== expected) throw new Error(`${expected} tasks were accepted and ${completed} completed`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]()
  }
}

/** The server responds with the completed task. An earlier response (`returnImmediately`) would cost the same work. */
export function sdkLoad(text: string): Pick<Load, 'requests' | 'mustHold'> {
  const message = { role: 'ROLE_USER', messageId: randomUUID(), parts: [{ text }] }
  const returnImmediately = process.env['BENCH_SDK_RETURN'] === 'immediately'
  const configuration = returnImmediately ? { returnImmediately } : undefined
  const body = { jsonrpc: '2.0', id: '1', method: 'SendMessage', params: { message, configuration } }
  return {
    requests: [httpRequest({ path: '/', headers: { 'A2A-Version': '1.0' }, body })],
    mustHold: returnImmediately ? 'TASK_STATE' : 'TASK_STATE_COMPLETED',
  }
}
