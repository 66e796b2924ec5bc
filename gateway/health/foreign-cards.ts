import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { RecentMap } from '@parley/kit/did/recent-map'
import type { Log } from '@parley/kit/process/log'
import { foreignCardPaths } from '@parley/wire/codecs/foreign-card'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import type { AgentEntry } from '../registry/entry.ts'
import { type ProbeOptions, readText } from './probe.ts'

/** How long a card is not read again after its renewal failed. */
const failedMs = 600_000
const agentsMax = 20_000

/** The card that an agent served last. */
interface Seen {
  path: string
  etag: string | undefined
  digest: string
  /** By `performance.now()`; until then, changes are not renewed. */
  failedUntil: number
}

type Foreign = Pick<AgentEntry, 'id' | 'slug' | 'url' | 'card'>

export interface ForeignCardsOptions {
  /** Reads the card of an agent into the registry. Resolves with the new entry. */
  renew: (id: string) => Promise<AgentEntry | undefined>
  log: Log
}

/** Probes foreign agents by their cards, and renews the entry of an agent that serves another card than before. */
export class ForeignCards {
  readonly #options: ForeignCardsOptions
  readonly #seen = new RecentMap<string, Seen>(agentsMax)

  constructor(options: ForeignCardsOptions) {
    this.#options = options
  }

  /** Returns whether the agent serves a card. An unchanged card is not transferred again if the agent sends ETags. */
  async probe(entry: Foreign, signal: AbortSignal, options: ProbeOptions): Promise<boolean> {
    const seen = this.#seen.get(entry.id)
    const first = seen === undefined ? [] : [seen.path]
    for (const path of new Set([...first, ...foreignCardPaths])) {
      const condition = path === seen?.path ? seen.etag : undefined
      const headers = condition === undefined ? {} : { 'if-none-match': condition }
      const { status, text, etag } = await readText(entry.url + path, signal, { ...options, headers })
      if (status === 304 && condition !== undefined) return true
      const card = status === 200 ? jsonObjectOf(text) : undefined
      if (typeof card?.['name'] !== 'string') continue
      const digest = createHash('sha256').update(text).digest('hex')
      const failedUntil = seen?.failedUntil ?? 0
      if (digest === seen?.digest || performance.now() < failedUntil) return true
      this.#seen.set(entry.id, { path, etag, digest, failedUntil: 0 })
      if (!isDeepStrictEqual(withoutSignatures(card), withoutSignatures(entry.card))) await this.#renew(entry)
      return true
    }
    return false
  }

  async #renew({ id, slug, card }: Foreign): Promise<void> {
    const { renew, log } = this.#options
    try {
      const entry = await renew(id)
      if (entry === undefined || entry.card === card) return
      log.info({ agent: slug, admitted: entry.admitted }, 'the card of a foreign agent has changed')
    } catch (error) {
      const seen = this.#seen.get(id)
      const failedUntil = performance.now() + failedMs
      if (seen !== undefined) this.#seen.set(id, { ...seen, etag: undefined, digest: '', failedUntil })
      log.warn({ err: error, agent: slug }, 'the changed card of a foreign agent is not accepted')
    }
  }
}

/** Servers may sign their card again for each request. */
function withoutSignatures(card: JsonObject): JsonObject {
  const { signatures: _, ...rest } = card
  return rest
}
