import { createSecretKey, type KeyObject } from 'node:crypto'
import { newId } from '@parley/kit/database/new-id'
import type { Log } from '@parley/kit/process/log'
import type { AgentIndex, RankedAgent, Ranking, RankOptions } from '@parley/negotiation/index/agent-index'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import type { TaskFeatures } from '@parley/negotiation/score/training-example'
import { sharesOf } from '@parley/negotiation/score/weights'
import { routingRecordOut } from '@parley/wire/codecs/parley/negotiation'
import type { Candidate, GatewayNegotiation, NamedAgent } from '@parley/wire/model/negotiation'
import { timestampOf } from '@parley/wire/model/timestamp'
import { isNewcomer } from '../../registry/admission.ts'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { isPaidAgent } from '../placement/agent-prices.ts'
import { anonymousHolder } from '../store/decision-quotas.ts'
import type { DecisionRecord, RoutingStore } from '../store/routing-store.ts'
import { type Absence, absenceOf } from './availability.ts'
import { type Choice, choiceOf, equalScores, explained, inOrder, type Trust, trustOf } from './choices.ts'
import { summaryOf, takenBy } from './decision-summary.ts'
import { DecisionLog } from './decisions.ts'
import type { Meaning } from './meaning.ts'
import {
  answerForAll,
  covering,
  needRequests,
  needsOut,
  onlyServer,
  type ServedNeed,
  servedNeeds,
  withoutTexts,
} from './needs.ts'

export interface NegotiatorOptions {
  index: AgentIndex
  registry: AgentDirectory
  store: RoutingStore
  /** Public address of the gateway. */
  gatewayUrl: string
  log: Log
  /** Secret for the keyed hashes of anonymous addresses. */
  holderKey: Uint8Array
  /** Whether an agent that is down is expected back. Default: every agent. */
  isAwaited?: (entry: AgentEntry) => boolean
  /** Without embeddings, agents are ranked by words only. */
  meaning?: Meaning | undefined
  /** Whether the beginning of the text is stored with a decision. Default: no. */
  storesTexts?: boolean
  /** Returns the id of the current trace. */
  traceId?: () => string | undefined
  /** Called with each decision that is recorded. Must not block or throw. */
  decided?: (record: DecisionRecord, decision: Decision) => void
}

/** A negotiation request with its origin and options. */
export interface DecisionRequest {
  wanted: NegotiationRequest
  owner: string | undefined
  /** The agents that the caller may see. */
  agents: AgentDirectory
  /** Network address of an anonymous request. */
  address?: string
  /** `agent/negotiation`, or the method whose message is routed. */
  method: string
  /** Maximum number of candidates. Default 10. */
  limit?: number
  /** See `RankOptions.refuse`. */
  refuse?: (id: string) => string | undefined
  /** See `inOrder`. Default: never. */
  newcomerWins?: (evidenced: string) => boolean
  /** Whether the minimum is ROUTE_MIN_SCORE, not the caller's. Then load and recent failures do not rule an agent out. */
  minScoreIsOurs?: boolean
  /** The features from which verdicts about the decision make examples. */
  features?: TaskFeatures | undefined
}

/** The result of a decision. */
export interface DecisionResult {
  /** The task in the agent's response. */
  task?: string | undefined
  /** Key of its context. */
  context?: string | undefined
}

/** An attempt to deliver a message. */
export interface DeliveryAttempt {
  agent: string
  /** `refused`: the agent rejected the form of a valid message, and another agent received the message. */
  outcome: 'answered' | 'refused' | 'not reached' | 'busy' | 'unknown'
}

export interface Decision {
  id: string
  ranking: Ranking
  /** The best agent that can handle the task, or the best agent overall if none can. */
  best: RankedAgent | undefined
  /** The agents that can handle the task, including temporarily absent ones, in the order in which they are tried. */
  order: Choice[]
  /** The best agent's response with the fields that the gateway adds (spec/negotiation.md#gateway). */
  answer: GatewayNegotiation
  /** The parts of the request with the agents that would serve them. Empty if it has only one part. */
  needs: ServedNeed[]
  tried: DeliveryAttempt[]
}

/** The method of a negotiation request without a message. */
const negotiation = 'agent/negotiation'
const candidatesDefault = 10
const candidatesMax = 1000
const excludedMax = 100
const never = () => false
/** The least probability with which an agent is found by `match`. */
const searchMin = 0.2
/** Weights with which the score is the skill match. */
export const onlySkills = { skillMatch: 1, ioCompatibility: 0, performance: 0, load: 0, cost: 0 }

/** Ranks agents and records each decision with its reasons, but without the request's texts. */
export class Negotiator {
  readonly #options: NegotiatorOptions
  readonly #decisions: DecisionLog
  readonly #holderKey: KeyObject

  constructor(options: NegotiatorOptions) {
    this.#options = options
    this.#holderKey = createSecretKey(options.holderKey)
    this.#decisions = new DecisionLog(options)
  }

  async decide(question: DecisionRequest): Promise<Decision> {
    const { wanted, limit = candidatesDefault } = question
    const { index, meaning } = this.#options
    const { restrictions } = question.agents
    const options = {
      ...(await meaning?.of(wanted)),
      excludedLimit: excludedMax,
      ...(restrictions !== undefined && { restrictions }),
    }
    const ranking = this.#rank(question, options)
    const present = this.#order(ranking.candidates, question)
    const able = present.filter(({ ranked }) => ranked.canHandle)
    const candidates = explained(able, ranking.candidates)
    const order =
      index.away === 0
        ? present
        : this.#order(this.#rank(question, { ...options, evenAway: true }).candidates, question)
    const id = newId().replaceAll('-', '')
    const needs = await this.#needs(question)
    if (needs.length === 0) {
      const shown = { ...ranking, candidates: candidates.slice(0, limit) }
      const [best] = shown.candidates
      return { id, ranking: shown, best, order, answer: this.#answer(id, shown, best), needs, tried: [] }
    }
    const servers = new Set(needs.flatMap(({ server }) => server?.id ?? []))
    const wholes = [...servers].flatMap((server) => ranking.answerOf(server) ?? [])
    const only = onlyServer(needs)
    const whole = order.length > 0 ? undefined : wholes.find((ranked) => ranked.id === only?.id)
    const forAll = whole && answerForAll(whole, needs)
    const all = forAll ? [forAll, ...candidates.filter((ranked) => ranked.id !== forAll.id)] : candidates
    const shown = { ...ranking, candidates: covering(all, needs, { wholes, limit }) }
    const best = all[0]
    return {
      id,
      ranking: shown,
      best,
      order: forAll ? this.#choiceOf(forAll, question.agents) : order,
      answer: { ...this.#answer(id, shown, best), needs: needsOut(needs) },
      needs,
      tried: [],
    }
  }

  /** The parts of a request, each ranked by itself. Empty if the request has only one part. */
  async #needs(question: DecisionRequest): Promise<ServedNeed[]> {
    const { meaning } = this.#options
    const { restrictions } = question.agents
    const ranked = await Promise.all(
      needRequests(question.wanted).map(async (wanted) => {
        const options = {
          ...(await meaning?.of(wanted)),
          excludedLimit: 0,
          ...(restrictions !== undefined && { restrictions }),
        }
        const part = { ...question, wanted, limit: candidatesDefault, newcomerWins: never }
        const order = this.#order(this.#rank(part, options).candidates, part)
        const able = order.map((choice) => choice.ranked).filter(({ canHandle }) => canHandle)
        return { text: wanted.taskSummary, able }
      }),
    )
    return servedNeeds(ranked)
  }

  /**
   * Ranks up to 1,000 agents by how well their skills match a text, whatever their load, price and trust. Includes agents that
   * are down for a short time. Records nothing.
   */
  async match(text: string, { restrictions }: AgentDirectory): Promise<RankedAgent[]> {
    const { index, meaning } = this.#options
    const wanted = { taskSummary: text, weights: onlySkills, minScore: searchMin }
    const options = {
      ...(await meaning?.of(wanted)),
      ...(restrictions !== undefined && { restrictions }),
      limit: candidatesMax,
      excludedLimit: 0,
      evenAway: true,
    }
    return index.rank(wanted, options).candidates.filter(({ canHandle }) => canHandle)
  }

  /**
   * Adds relevant candidates beyond the limit: the most trusted agents among equal scores, and the best agents with
   * evidence when new agents are among the candidates.
   */
  #rank({ wanted, limit = candidatesDefault, refuse }: DecisionRequest, options: RankOptions): Ranking {
    const { index } = this.#options
    const rankOptions = { ...options, ...(refuse !== undefined && { refuse }) }
    const places = Math.min(candidatesMax, Math.max(limit, candidatesDefault))
    const ranking = index.rank(wanted, { ...rankOptions, limit: places })
    const { candidates } = ranking
    const least = (candidates[0]?.exactScore ?? 0) - equalScores
    if (candidates.length < places) return ranking
    const areAllEqual = (candidates.at(-1)?.exactScore ?? 0) >= least
    const rules: ((id: string) => boolean)[] = [
      ...(areAllEqual ? [1, 2].map((trust) => (id: string) => this.#trustOf(id) >= trust) : []),
      (id) => this.#isNewcomer(id),
    ]
    // Without a candidate that the rule leaves out, the ranking with it would be the same.
    const leftOut = rules.filter((rule) => candidates.some(({ id }) => rule(id)))
    if (leftOut.length === 0) return ranking
    const known = new Map(candidates.map((ranked) => [ranked.id, ranked]))
    for (const isLeftOut of leftOut) {
      const rule = (id: string) => (isLeftOut(id) ? 'less trusted' : refuse?.(id))
      for (const ranked of index.rank(wanted, { ...rankOptions, limit: places, refuse: rule }).candidates)
        known.set(ranked.id, ranked)
    }
    return { ...ranking, candidates: [...known.values()].toSorted((a, b) => b.exactScore - a.exactScore) }
  }

  #trustOf(id: string): Trust {
    const entry = this.#options.registry.find(id)
    return entry === undefined ? 2 : trustOf(entry)
  }

  #isNewcomer(id: string): boolean {
    const entry = this.#options.registry.find(id)
    return entry !== undefined && isNewcomer(entry)
  }

  /** The candidates that can handle the task, except absent agents that are not expected back. */
  #order(candidates: readonly RankedAgent[], question: DecisionRequest): Choice[] {
    const { newcomerWins = never, agents } = question
    const order = inOrder(
      candidates.flatMap((ranked) => (ranked.canHandle ? this.#choiceOf(ranked, agents) : [])),
      newcomerWins,
    )
    const passing = candidates.filter((ranked) => this.#isHeldBackForNow(ranked, question))
    const preferred = passing.filter((ranked) => this.#isBetterThanPaid(ranked, candidates, agents))
    const before = inOrder(
      preferred.flatMap((ranked) => this.#choiceOf(ranked, agents)),
      never,
    )
    if (order.length > 0 || before.length > 0) return [...before, ...order]
    return inOrder(
      passing.flatMap((ranked) => this.#choiceOf(ranked, agents)),
      never,
    )
  }

  #choiceOf(ranked: RankedAgent, agents: AgentDirectory): Choice[] {
    const entry = agents.find(ranked.id)
    const choice = entry && choiceOf(ranked, entry, this.#absenceOf(entry))
    return choice === undefined ? [] : [choice]
  }

  /**
   * Whether the score is below the minimum only because of load or recent failures, which are temporary. A minimum or
   * a latency limit that the caller chose applies unchanged.
   */
  #isHeldBackForNow(
    { id, canHandle, exactScore, subscores }: RankedAgent,
    question: DecisionRequest,
  ): boolean {
    const { wanted, minScoreIsOurs = false } = question
    if (canHandle || !minScoreIsOurs || exactScore === 0 || subscores.skillMatch === 0) return false
    if (this.#isNewcomer(id)) return false
    const shares = sharesOf(wanted.weights)
    const failures = wanted.maxLatencyMs === undefined ? shares.performance * (1 - subscores.performance) : 0
    const unharmed = exactScore + failures + shares.load * (1 - subscores.load)
    return unharmed >= (wanted.minScore ?? 0)
  }

  /** Whether the agent is free and matches better than the best candidate, if that candidate is paid. */
  #isBetterThanPaid(
    { id, matchOdds }: RankedAgent,
    [best]: readonly RankedAgent[],
    agents: AgentDirectory,
  ): boolean {
    const [entry, first] = [agents.find(id), best && agents.find(best.id)]
    if (best === undefined || entry === undefined || first === undefined) return false
    return isPaidAgent(first) && !isPaidAgent(entry) && matchOdds > best.matchOdds
  }

  #absenceOf(entry: AgentEntry): Absence | undefined {
    const { isAwaited = () => true } = this.#options
    return isAwaited(entry) ? absenceOf(entry, Date.now()) : undefined
  }

  /** Records the decision for a message (`DecisionLog.save`). */
  record(decision: Decision, question: DecisionRequest, result?: DecisionResult): Promise<void> {
    return this.#decisions.save(this.#recordOf(decision, question, result))
  }

  /** Like `record`, but resolves early while the store keeps up. Never rejects. */
  recordInBackground(decision: Decision, question: DecisionRequest): Promise<void> {
    return this.#decisions.saveInBackground(this.#recordOf(decision, question))
  }

  findRecord(id: string): Promise<DecisionRecord | undefined> {
    return this.#decisions.find(id)
  }

  #recordOf(
    decision: Decision,
    question: DecisionRequest,
    { task, context }: DecisionResult = {},
  ): DecisionRecord {
    const { id, answer, best, tried } = decision
    const { owner, address = '', method, wanted, features } = question
    const { storesTexts = false, traceId, decided } = this.#options
    const at = Date.now()
    const chosen = method === negotiation ? best?.slug : takenBy(tried)
    const trace = traceId?.()
    const text = storesTexts ? wanted.taskSummary : undefined
    const record: DecisionRecord = {
      id,
      at,
      ...(owner === undefined ? { holder: anonymousHolder(address, this.#holderKey) } : { owner }),
      ...(task !== undefined && { task }),
      ...(features !== undefined && { features }),
      ...(context !== undefined && { context }),
      summary: summaryOf(decision, { method, chosen, trace, text }),
      body: routingRecordOut(withoutTexts(answer), {
        method,
        decidedAt: timestampOf(at * 1000),
        chosen: chosen ?? null,
        tried: tried.map(({ agent, outcome }) => ({ agent, outcome })),
        asked: { ...wanted, taskSummary: undefined, taskDetails: undefined },
      }),
    }
    decided?.(record, decision)
    return record
  }

  #answer(id: string, ranking: Ranking, best: RankedAgent | undefined): GatewayNegotiation {
    return {
      id,
      best: best && this.#candidate(best),
      candidates: ranking.candidates.map((ranked) => this.#candidate(ranked)),
      candidatesTotal: ranking.total,
      excluded: ranking.excluded.map(({ id: agent, slug, rule, temporary }) => {
        const entry = temporary === true ? this.#options.registry.find(agent) : undefined
        const isAway = entry !== undefined && this.#absenceOf(entry) !== undefined
        return { agent: slug, rule, ...(isAway && { temporary: true }) }
      }),
      excludedTotal: ranking.excludedTotal,
    }
  }

  #candidate(ranked: RankedAgent): Candidate {
    return { agent: this.#agent(ranked), answer: ranked }
  }

  #agent({ id, slug }: RankedAgent): NamedAgent {
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
