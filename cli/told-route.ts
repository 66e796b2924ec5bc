import { RpcError } from '../shared/client/rpc-error.ts'
import type { OutgoingRequest } from '../shared/client/transport.ts'
import { type Io, say } from './io.ts'
import { type ShownNegotiation, sayRefused, sayWinner } from './ranking-view.ts'
import type { ServerConnection } from './server-connection.ts'

/** Says which agent of the gateway took a message that named none, and why; once. */
export class ToldRoute {
  readonly #io: Io
  readonly #server: ServerConnection
  #told = false

  constructor(io: Io, server: ServerConnection) {
    this.#io = io
    this.#server = server
  }

  /** `fetch`, listening to the headers of the answers. */
  readonly fetch = async (url: string, init: OutgoingRequest): Promise<Response> => {
    const response = await fetch(url, init)
    if (response.ok && !this.#told) {
      this.#told = true
      await this.#tell(response.headers.get('x-negotiation-id'), response.headers.get('x-agent'))
    }
    return response
  }

  /** Of a refusal: the best candidates and why not. */
  refused(thrown: unknown): void {
    if (thrown instanceof RpcError && thrown.data['reason'] === 'no_agent')
      sayRefused(this.#io, thrown.data as ShownNegotiation)
  }

  async #tell(id: string | null, agent: string | null): Promise<void> {
    if (id === null) {
      if (agent !== null) say(this.#io, `→ ${agent}`)
      return
    }
    // The record is an extra: without it the work goes on.
    const read = await this.#server.getJson(`/negotiations/${id}`).catch(() => undefined)
    const record = read?.body as (ShownNegotiation & { chosen?: string }) | undefined
    const chosen = record?.candidates?.find((one) => one.agent?.slug === agent) ?? record
    if (chosen !== undefined) sayWinner(this.#io, chosen)
    else if (agent !== null) say(this.#io, `→ ${agent}`)
  }
}
