import type { Caller } from '@parley/kit/auth/caller'
import type { callsAnswer } from '@parley/wire/codecs/answers/operator/records'
import type { z } from 'zod'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { CallCounts, windowMinutes } from './call-counts.ts'
import type { RoutingSeries } from './routing-series.ts'

/** The name for callers other than agents. */
const callers = 'callers'

/** Counts the calls that this gateway forwards to agents. */
export class ForwardedCalls {
  readonly #counts = new CallCounts()
  readonly #series: RoutingSeries
  readonly #registry: Registry
  /** Supervised agents by their clients at an external OAuth server. */
  readonly #slugOfClient = new Map<string, string>()

  constructor(registry: Registry, series: RoutingSeries) {
    this.#registry = registry
    this.#series = series
    registry.follow((_id, entry) => {
      if (entry?.origin === 'supervised' && !entry.owner.startsWith('did:'))
        this.#slugOfClient.set(entry.owner, entry.slug)
    })
  }

  begin({ slug }: AgentEntry, caller: Caller | undefined): ForwardedCall {
    const from = caller === undefined ? callers : this.#nameOf(caller.delegate ?? caller.subject)
    const began = performance.now()
    return {
      answered: (status) => {
        const ms = performance.now() - began
        const isError = status >= 500
        this.#counts.add(from, slug, ms, isError)
        this.#series.callAnswered(slug, ms / 1000, isError)
      },
      failed: () => {
        this.#counts.add(from, slug, undefined, true)
        this.#series.add(slug, 'failed')
      },
      firstEvent: () => this.#series.firstEvent(slug, (performance.now() - began) / 1000),
    }
  }

  /** The answer of `GET /operator/overview` about calls. */
  callsInWindow(): z.output<typeof callsAnswer> {
    const calls = this.#counts.inWindow().map(({ p50Ms, ...pair }) => ({ ...pair, p50_ms: p50Ms ?? null }))
    return { window_minutes: windowMinutes, calls }
  }

  #nameOf(client: string): string {
    const agent = client.startsWith('did:') ? this.#registry.find(client)?.slug : undefined
    return agent ?? this.#slugOfClient.get(client) ?? callers
  }
}

/** One call. Exactly one of `answered` and `failed` is called, and `firstEvent` after `answered` if the response is a stream. */
export interface ForwardedCall {
  answered(status: number): void
  failed(): void
  firstEvent(): void
}
