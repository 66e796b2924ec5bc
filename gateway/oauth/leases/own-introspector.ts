import type { Introspection, Introspector } from '@parley/kit/auth/introspection'
import { leasePollSchema } from '@parley/kit/auth/lease-protocol'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import type { TokenIntrospection } from '../introspect.ts'
import type { Leases } from './leases.ts'

/** The name of the gateway among the clients with leases. Ids of clients contain no spaces. */
const holderName = 'this gateway'

/**
 * Introspects the tokens of the gateway's callers, and caches the responses under a lease that the gateway grants itself.
 * The gateway is thus a holder like an agent, without HTTP, and revocations at every gateway wait for it.
 */
export class OwnIntrospector implements Introspector, AsyncDisposable {
  readonly #introspection: Pick<TokenIntrospection, 'introspect'>
  readonly #leases: Leases
  readonly #onUse: (clientId: string) => void
  readonly #cached: LeasedIntrospector

  /** @param onUse called for each active token. Must not block or throw. */
  constructor(
    introspection: Pick<TokenIntrospection, 'introspect'>,
    leases: Leases,
    onUse: (clientId: string) => void,
  ) {
    this.#introspection = introspection
    this.#leases = leases
    this.#onUse = onUse
    this.#cached = new LeasedIntrospector({
      http: {
        request: (token) => this.#request(token),
        post: (request) => this.#post(request),
        ping: async () => {},
        [Symbol.asyncDispose]: async () => {},
      },
    })
  }

  async introspect(token: string): Promise<Introspection> {
    const answer = await this.#cached.introspect(token)
    if (answer.active && answer.client_id !== undefined) this.#onUse(answer.client_id)
    return answer
  }

  /** Call it before the leases are disposed of, so that the gateway gives its lease back. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#cached[Symbol.asyncDispose]()
  }

  async #request(token: string) {
    // The state is read first, so the answer reflects all invalidations up to it.
    const state = this.#leases.grantor.stateFor()
    const { answer, tags } = await this.#introspection.introspect(token)
    return { answer, lease: state && { ...state, tags: [...tags] }, bytes: 0 }
  }

  /** Polls the leases of this process. */
  async #post({ body, timeoutMs, signal }: { body: string; timeoutMs: number; signal?: AbortSignal }) {
    const poll = leasePollSchema.parse(JSON.parse(body))
    const ended = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])])
    if (poll.leave === undefined)
      await Promise.race([this.#leases.prepare(poll.applied?.seq), rejectedBy(ended)])
    return { status: 200, text: JSON.stringify(await this.#leases.grantor.poll(holderName, poll, ended)) }
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(new DOMException('the poll was not answered in time', 'TimeoutError'))
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
  })
}
