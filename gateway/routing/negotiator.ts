import { randomBytes } from 'node:crypto'
import { negotiationOut } from '../../shared/negotiation/answer.ts'
import type { NegotiationRequest } from '../../shared/negotiation/request.ts'
import type { Log } from '../../shared/process/log.ts'
import type { JsonObject } from '../../shared/protocol/task.ts'
import { timestampOf } from '../../shared/protocol/timestamp.ts'
import type { AgentIndex, Ranked, Ranking } from '../ranking/agent-index.ts'
import type { Registry } from '../registry/registry.ts'
import { Decisions } from './decisions.ts'
import type { Meaning } from './meaning.ts'
import type { DecisionRecord, RoutingStore } from './routing-store.ts'

export interface NegotiatorOptions {
  index: AgentIndex
  registry: Registry
  store: RoutingStore
  /** Public address of the gateway. */
  gatewayUrl: string
  log: Log
  /** Absent: words alone. */
  meaning?: Meaning | undefined
}

/** What was asked, by whom, on which way. */
export interface Question {
  wanted: NegotiationRequest
  owner: string | undefined
  /** `agent/negotiation`, or the method whose message is routed. */
  method: string
  /** Candidates wanted. Default 10. */
  limit?: number
  /** As `RankOptions.refuse`. */
  refuse?: (id: string) => string | undefined
}

/** An agent that was tried, and what came of it. */
export interface Try {
  agent: string
  outcome: 'answered' | 'not reached' | 'busy' | 'unknown'
}

export interface Decision {
  id: string
  ranking: Ranking
  /** The best that can do it; else the best that cannot. */
  best: Ranked | undefined
  /** Those that can do it, best first. */
  able: Ranked[]
  /** The specification's answer for the best one, with what the gateway knows beside it. */
  answer: JsonObject
  tried: Try[]
}

const candidatesDefault = 10
const excludedMax = 100

/** Asks the index, and keeps on record what it said and why; the texts that were asked are not kept. */
export class Negotiator {
  readonly #options: NegotiatorOptions
  readonly #decisions: Decisions

  constructor(options: NegotiatorOptions) {
    this.#options = options
    this.#decisions = new Decisions(options)
  }

  async decide({ wanted, limit = candidatesDefault, refuse }: Question): Promise<Decision> {
    const near = await this.#options.meaning?.of(wanted)
    const ranking = this.#options.index.rank(wanted, {
      limit,
      excludedLimit: excludedMax,
      ...near,
      ...(refuse !== undefined && { refuse }),
    })
    const { candidates } = ranking
    const able = candidates.filter(({ canHandle }) => canHandle)
    const best = able[0] ?? candidates[0]
    const id = randomBytes(16).toString('hex')
    return { id, ranking, best, able, answer: this.#answer(id, ranking, best), tried: [] }
  }

  /** Durable when the promise resolves. */
  record(decision: Decision, question: Question): Promise<void> {
    return this.#decisions.save(recordOf(decision, question))
  }

  /** As `record`, for those who do not wait for the store, as long as it keeps up. Never rejects. */
  recordBehind(decision: Decision, question: Question): Promise<void> {
    return this.#decisions.saveBehind(recordOf(decision, question))
  }

  /** A record that was made here is there at once. */
  findRecord(id: string): Promise<DecisionRecord | undefined> {
    return this.#decisions.find(id)
  }

  /** The candidates in short, for an error's `data`. */
  candidatesOut(candidates: readonly Ranked[]): JsonObject[] {
    return candidates.map((ranked) => this.#candidate(ranked))
  }

  #answer(id: string, ranking: Ranking, best: Ranked | undefined): JsonObject {
    return {
      ...(best === undefined ? nobody : (negotiationOut(best) as unknown as JsonObject)),
      agent: best === undefined ? null : this.#agent(best),
      candidates: this.candidatesOut(ranking.candidates),
      candidates_total: ranking.total,
      excluded: ranking.excluded.map(({ slug, rule }) => ({ agent: slug, rule })),
      excluded_total: ranking.excludedTotal,
      negotiation_id: id,
    }
  }

  #candidate(ranked: Ranked): JsonObject {
    return { agent: this.#agent(ranked), ...(negotiationOut(ranked) as unknown as JsonObject) }
  }

  #agent({ id, slug }: Ranked): JsonObject {
    const { registry, gatewayUrl } = this.#options
    const entry = registry.find(id)
    return {
      slug,
      name: entry?.name ?? slug,
      did: entry?.did ?? null,
      url: `${gatewayUrl}/agents/${slug}`,
    }
  }
}

/** The agent that has the message, or may have it; undefined where none of those that were tried does. */
function takenBy(tried: readonly Try[]): string | undefined {
  return tried.findLast(({ outcome }) => outcome === 'answered' || outcome === 'unknown')?.agent
}

const nobody: JsonObject = {
  can_handle: false,
  score: 0,
  confidence: 1,
  rejection_reason: 'no agent is a candidate',
  reasons: ['no agent is a candidate'],
  subscores: { skill_match: 0, io_compatibility: 0, performance: 0, load: 0, cost: 0 },
  skill_matches: [],
  queue_depth: 0,
}

function recordOf(
  { id, answer, best, tried }: Decision,
  { owner, method, wanted }: Question,
): DecisionRecord {
  const at = Date.now()
  return {
    id,
    at,
    ...(owner !== undefined && { owner }),
    body: {
      ...answer,
      method,
      decided_at: timestampOf(at * 1000),
      chosen: (method === 'agent/negotiation' ? best?.slug : takenBy(tried)) ?? null,
      tried: tried.map(({ agent, outcome }) => ({ agent, outcome })),
      asked: askedOut(wanted),
    },
  }
}

/** Everything but the words. */
function askedOut(wanted: NegotiationRequest): JsonObject {
  const { weights } = wanted
  const out: JsonObject = {
    weights: {
      skill_match: weights.skillMatch,
      io_compatibility: weights.ioCompatibility,
      performance: weights.performance,
      load: weights.load,
      cost: weights.cost,
    },
  }
  const fields = {
    input_mime_types: wanted.inputMimeTypes,
    output_mime_types: wanted.outputMimeTypes,
    max_latency_ms: wanted.maxLatencyMs,
    max_cost_amount: wanted.maxCostAmount,
    required_tools: wanted.requiredTools,
    forbidden_tools: wanted.forbiddenTools,
    min_score: wanted.minScore,
  }
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) out[name] = value
  return out
}
