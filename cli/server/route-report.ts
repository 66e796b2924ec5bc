import { delay } from '@parley/client/internal/delay'
import { RpcError } from '@parley/client/internal/rpc-error'
import type { OutgoingRequest } from '@parley/client/internal/transport'
import { readNegotiation } from '@parley/wire/codecs/parley/negotiation'
import { type Io, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'
import { sayRefused, sayWinner } from '../terminal/ranking-view.ts'
import type { ServerConnection } from './server-connection.ts'

/** Maximum number of retries of a message with an unknown outcome. The gateway queries the agent for 10 s each time. */
const repeatsMax = 3
/** Default delay before a retry, and its maximum, in seconds. */
const [pauseS, pauseMaxS] = [2, 5]

/** Prints once which agent the gateway chose for a message and why. */
export class ToldRoute {
  readonly #io: Io
  readonly #server: ServerConnection
  #told = false

  constructor(io: Io, server: ServerConnection) {
    this.#io = io
    this.#server = server
  }

  /** A `fetch` that reads the routing headers and retries unknown outcomes with the gateway's Idempotency-Key. */
  readonly fetch = async (url: string, init: OutgoingRequest): Promise<Response> => {
    let response = await fetch(url, init)
    for (let count = 0; count < repeatsMax; count += 1) {
      const key = response.status === 503 ? response.headers.get('idempotency-key') : null
      if (key === null) break
      const agent = oneLine(response.headers.get('x-agent') ?? 'an agent', 100)
      say(this.#io, `· it is unknown whether ${agent} accepted the message; retrying`)
      await response.body?.cancel()
      await delay(1000 * pauseOf(response.headers.get('retry-after')), init.signal)
      response = await fetch(url, { ...init, headers: { ...init.headers, 'idempotency-key': key } })
    }
    if (response.ok && !this.#told) {
      this.#told = true
      await this.#tell(response.headers.get('x-negotiation-id'), response.headers.get('x-agent'))
    }
    return response
  }

  /** Prints the best candidates of a refusal and why none was chosen. */
  refused(thrown: unknown): void {
    if (thrown instanceof RpcError && thrown.data['reason'] === 'no_agent')
      sayRefused(this.#io, readNegotiation(thrown.data))
  }

  async #tell(id: string | null, agent: string | null): Promise<void> {
    if (id === null) {
      if (agent !== null) say(this.#io, `→ ${agent}`)
      return
    }
    // The record is optional output, so continue without it.
    const read = await this.#server.getJson(`/negotiations/${id}`).catch(() => undefined)
    const record = read && readNegotiation(read.body)
    const chosen = record?.candidates?.find((one) => one.agent?.slug === agent) ?? record
    if (chosen !== undefined) sayWinner(this.#io, chosen)
    else if (agent !== null) say(this.#io, `→ ${agent}`)
  }
}

function pauseOf(retryAfter: string | null): number {
  return /^\d{1,4}$/.test(retryAfter ?? '') ? Math.min(Number(retryAfter), pauseMaxS) : pauseS
}
