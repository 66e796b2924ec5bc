import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Log } from '@parley/kit/process/log'
import { timestampOf } from '@parley/wire/model/timestamp'
import { isUntried } from '../../registry/admission.ts'
import type { AgentEntry, ExampleProbe } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import { revisionOf } from '../../registry/revision.ts'
import { isPaidAgent } from '../placement/agent-prices.ts'
import type { ExampleOutcome } from './example-sender.ts'
import { exampleTexts } from './example-texts.ts'

export interface ExampleProberOptions {
  registry: Pick<Registry, 'follow' | 'find' | 'amendIf'>
  /**
   * Sends one example and returns what became of it; undefined if the gateway may not call the agent. Rejects only if the
   * signal is aborted.
   */
  send: (entry: AgentEntry, text: string, signal: AbortSignal) => Promise<ExampleOutcome | undefined>
  /** Takes the right to probe, which only one of several gateways has, for one probe. Default: always. */
  claim?: () => Promise<boolean>
  log: Log
  /** The shortest time between two probes of one agent. Default 10 minutes. */
  againAfterMs?: number
  /** Interval at which waiting agents are considered again. Default 5 s. */
  everyMs?: number
  now?: () => number
}

/** Number of probes of one revision of an agent. */
const attemptsMax = 2

const noResults = {
  completed: 0,
  failed: 0,
  inputRequired: 0,
  authRequired: 0,
  paymentRequired: 0,
  timedOut: 0,
} satisfies Record<ExampleOutcome, number>

/**
 * Sends each new admitted agent up to 3 examples of its skills and stores their results
 * (spec/gateway-registry.md#examples). One example is in progress at a time, over all agents and gateways. An agent with a
 * price is never probed, and a probe ends with the first demand for a payment or for authentication. If no example was
 * completed, the agent is probed again.
 */
export class ExampleProber implements AsyncDisposable {
  readonly #options: ExampleProberOptions
  readonly #now: () => number
  /** Ids of the agents that may have to be probed, in order. */
  readonly #waiting = new Set<string>()
  /** The card and the skills with which an agent needs no further probe, by id. */
  readonly #settled = new Map<string, Pick<AgentEntry, 'card' | 'skills'>>()
  readonly #stopped = new AbortController()
  readonly #timer: NodeJS.Timeout
  #round: Promise<void> | undefined
  /** Whether the last round failed. Limits logging to one line per storage outage. */
  #failing = false

  constructor(options: ExampleProberOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
    this.#timer = setInterval(() => this.#start(), options.everyMs ?? 5000)
    this.#timer.unref()
    options.registry.follow((id, entry) => this.#note(id, entry))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopped.abort()
    await this.#round
  }

  /** Called with each change of an entry, most of which are heartbeats. */
  #note(id: string, entry: AgentEntry | undefined): void {
    if (entry === undefined) {
      this.#waiting.delete(id)
      this.#settled.delete(id)
      return
    }
    const settled = this.#settled.get(id)
    if (!isReady(entry) || (settled?.card === entry.card && settled.skills === entry.skills)) return
    const isNew = !this.#waiting.has(id)
    this.#waiting.add(id)
    if (isNew) this.#start()
  }

  #start(): void {
    if (this.#round !== undefined || this.#waiting.size === 0 || this.#stopped.signal.aborted) return
    this.#round = this.#oneRound().finally(() => {
      this.#round = undefined
    })
  }

  async #oneRound(): Promise<void> {
    try {
      await this.#probeWaiting()
      this.#failing = false
    } catch (error) {
      if (!this.#failing && !this.#stopped.signal.aborted)
        this.#options.log.error({ err: error }, 'the examples of agents could not be tried')
      this.#failing = true
    }
  }

  async #probeWaiting(): Promise<void> {
    // Includes agents that are added in the meantime.
    for (const id of this.#waiting) {
      // The registry announces a change before it is complete, and a large registry must not block the gateway.
      await yieldToEventLoop()
      if (this.#stopped.signal.aborted) return
      const entry = this.#options.registry.find(id)
      const plan = entry === undefined || !isReady(entry) ? 'leave' : this.#planOf(entry)
      if (plan === 'wait') continue
      if (entry === undefined || plan === 'leave' || plan === 'settle') {
        this.#waiting.delete(id)
        if (entry !== undefined && plan === 'settle') this.#settle(entry)
        continue
      }
      // Another gateway probes, and may have to probe for a while.
      if ((await this.#options.claim?.()) === false) return
      await this.#probe(entry, plan)
    }
  }

  #settle({ id, card, skills }: AgentEntry): void {
    this.#settled.set(id, { card, skills })
  }

  #planOf(entry: AgentEntry): Plan | 'settle' | 'wait' {
    if (!isUntried(entry) || isPaidAgent(entry)) return 'settle'
    const known = entry.exampleProbe
    const earliest = known === undefined ? 0 : Date.parse(known.at) + (this.#options.againAfterMs ?? 600_000)
    // Checked before the revision, whose hash is computed each time.
    if (earliest > this.#now()) return 'wait'
    const texts = exampleTexts(entry)
    if (texts.length === 0) return 'settle'
    const revision = revisionOf(entry)
    const attempts = known?.revision === revision ? known.attempts : 0
    if (attempts > 0 && (attempts >= attemptsMax || !isInconclusive(known))) return 'settle'
    return { texts, revision, attempts: attempts + 1 }
  }

  async #probe(entry: AgentEntry, { texts, revision, attempts }: Plan): Promise<void> {
    const { registry, send, log } = this.#options
    const { signal } = this.#stopped
    const started = { revision, at: timestampOf(this.#now() * 1000), attempts, ...noResults }
    // Stored first, so that a gateway that stops in the middle does not repeat it indefinitely.
    if (!(await this.#store(entry.id, entry.exampleProbe, started))) return
    const results: ExampleProbe = { ...started }
    try {
      for (const text of texts) {
        // The agent may have been quarantined, removed or changed in the meantime.
        const current = registry.find(entry.id)
        if (current === undefined || !isReady(current) || current.card !== entry.card) break
        const outcome = await send(current, text, signal)
        if (outcome === undefined) break
        results[outcome] += 1
        if (outcome === 'paymentRequired' || outcome === 'authRequired') break
      }
    } catch (error) {
      if (signal.aborted) return
      throw error
    }
    await this.#store(entry.id, started, results)
    const { revision: _, at: _at, ...counts } = results
    log.info({ agent: entry.slug, ...counts }, 'the examples of an agent were tried')
  }

  /** Returns false if another gateway has stored a probe since `known`. */
  #store(id: string, known: ExampleProbe | undefined, exampleProbe: ExampleProbe): Promise<boolean> {
    const isKnown = (entry: AgentEntry) => isDeepStrictEqual(entry.exampleProbe, known)
    return this.#options.registry.amendIf(id, isKnown, { exampleProbe })
  }
}

interface Plan {
  texts: string[]
  revision: string
  /** The number of this probe of the revision. */
  attempts: number
}

function isReady({ admitted, status, quarantine }: AgentEntry): boolean {
  return admitted && status === 'ready' && quarantine === undefined
}

/** Whether the agent was perhaps only unavailable. */
function isInconclusive(probe: ExampleProbe | undefined): boolean {
  const { completed = 0, inputRequired = 0, authRequired = 0, paymentRequired = 0 } = probe ?? {}
  return completed + inputRequired + authRequired + paymentRequired === 0
}
