import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cores, nodeOn } from './machine.ts'

/** What the load generator shall do. */
export interface Load {
  address: string
  /** Whole HTTP requests, sent in turn. */
  requests: string[]
  connections: number
  /** Stops after so many seconds or so many requests. */
  seconds?: number
  total?: number
  /** Begun a second, whatever the server does (open loop). Default: each connection asks again once it is answered. */
  perSecond?: number
  /** Every body must hold this. */
  mustHold: string
}

export interface LoadResult {
  /** Answered with 200 and what the body must hold. */
  accepted: number
  refused: number
  /** One of the refused answers. */
  refusal: string | undefined
  seconds: number
  p50Ms: number
  p99Ms: number
  /** How much of a core the generator used itself, 0 to 1. Near 1 it measures itself. */
  generatorUse: number
}

/** The load generator, in a process on a core of its own. */
export class LoadGenerator implements Disposable {
  readonly #child: ChildProcess

  constructor() {
    const { file, args } = nodeOn(cores.load, [`${import.meta.dirname}/load-process.ts`])
    this.#child = spawn(file, args, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  }

  async run(load: Load): Promise<LoadResult> {
    this.#child.send(load)
    const [result] = (await once(this.#child, 'message')) as [LoadResult | { error: string }]
    if ('error' in result) throw new Error(result.error)
    if (result.refused > 0) throw new Error(`${result.refused} requests were refused: ${result.refusal}`)
    return result
  }

  [Symbol.dispose](): void {
    this.#child.kill()
  }
}

/** The bytes of one JSON request over HTTP/1.1. */
export function httpRequest(parts: { path: string; headers: Record<string, string>; body: unknown }): string {
  const body = JSON.stringify(parts.body)
  const headers = {
    Host: '127.0.0.1',
    'Content-Type': 'application/json',
    ...parts.headers,
    'Content-Length': String(Buffer.byteLength(body)),
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${parts.path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}
