import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cores, nodeBehind, nodeOn, type Placement } from './machine.ts'

/** Options of the load generator. */
export interface Load {
  address: string
  /** Complete HTTP requests, sent in turn. */
  requests: string[]
  connections: number
  /** Stops after this many seconds or requests. */
  seconds?: number
  total?: number
  /** Requests started per second (open loop). By default, each connection sends its next request after a response. */
  perSecond?: number
  /** Text that every body must contain. */
  mustHold: string
}

export interface LoadResult {
  /** Number of responses with status 200 and the expected text. */
  accepted: number
  refused: number
  /** The text of one refused response. */
  refusal: string | undefined
  seconds: number
  p50Ms: number
  p99Ms: number
  /** Fraction of a core that the generator used, 0 to 1. If it is near 1, the generator limits the result. */
  generatorUse: number
}

/** The load generator, in a process on its own core. With free cores, it has a lower priority than the server. */
export class LoadGenerator implements Disposable {
  readonly placement: Placement
  readonly #child: ChildProcess

  constructor(placement: Placement = 'pinned') {
    this.placement = placement
    const program = [`${import.meta.dirname}/load-process.ts`]
    const { file, args } = placement === 'free' ? nodeBehind(program) : nodeOn(cores.load, program)
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

/** The bytes of one HTTP/1.1 request with a JSON body. */
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
