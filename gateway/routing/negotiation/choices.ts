import type { RankedAgent } from '@parley/negotiation/index/agent-index'
import { isNewcomer } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { isPaidAgent } from '../placement/agent-prices.ts'
import { type Absence, exclusionOf } from './availability.ts'

/** Scores that differ by less than this count as equal, and trust decides between them. */
export const equalScores = 0.05
/** Matches that are nearly certain have almost equal scores. They count as equal only if their odds differ by less than this factor. */
const equalOdds = Math.log(4)
const rounding = 1e-9

/** An agent that can handle a message, with the facts that decide the order of agents. */
export interface Choice {
  ranked: RankedAgent
  trust: Trust
  paid: boolean
  /** Whether the agent is unverified and has too few completed tasks. */
  newcomer: boolean
  /** Undefined if the agent is present. */
  away: Absence | undefined
}

/** 0 is a supervised agent, 1 a verified one, and 2 any other. Lower values are preferred. */
export type Trust = 0 | 1 | 2

export function trustOf({ origin, verified }: Pick<AgentEntry, 'origin' | 'verified'>): Trust {
  if (origin === 'supervised') return 0
  return verified ? 1 : 2
}

/** Returns undefined if the agent is excluded and not expected back. */
export function choiceOf(
  ranked: RankedAgent,
  entry: AgentEntry,
  away: Absence | undefined,
): Choice | undefined {
  if (away === undefined && exclusionOf(entry) !== undefined) return undefined
  return { ranked, trust: trustOf(entry), paid: isPaidAgent(entry), newcomer: isNewcomer(entry), away }
}

/**
 * Returns the order in which agents are tried. Trust decides among scores within 0.05 of the best. New agents follow
 * those with evidence, unless the newcomer share lets the first new agent win.
 * @param choices sorted by score, best first
 * @param newcomerWins whether a newcomer may win over the given agent
 */
export function inOrder(choices: readonly Choice[], newcomerWins: (evidenced: string) => boolean): Choice[] {
  const least = (choices[0]?.ranked.exactScore ?? 0) - equalScores - rounding
  const leastOdds = (choices[0]?.ranked.matchOdds ?? 0) - equalOdds
  const isEqual = ({ ranked }: Choice) => ranked.exactScore >= least && ranked.matchOdds >= leastOdds
  const end = choices.findIndex((choice) => !isEqual(choice))
  const equal = end < 0 ? choices : choices.slice(0, end)
  const order = [...equal.toSorted((a, b) => a.trust - b.trust), ...choices.slice(equal.length)]
  const evidenced = order.filter(({ newcomer }) => !newcomer)
  const newcomers = order.filter(({ newcomer }) => newcomer)
  const first = order.find(({ newcomer, away }) => !newcomer || away === undefined)
  const [winner] = evidenced
  if (first?.newcomer !== true || winner === undefined) return [...evidenced, ...newcomers]
  return newcomerWins(winner.ranked.id)
    ? [first, ...evidenced, ...newcomers.filter((one) => one !== first)]
    : [...evidenced, ...newcomers]
}

/** The next agent to try, or undefined if no remaining agent may substitute for the absent and busy ones. */
export function nextChoice(
  order: readonly Choice[],
  notTaken: ReadonlySet<string> = new Set(),
): Choice | undefined {
  const isMissing = ({ away, ranked }: Choice) => away !== undefined || notTaken.has(ranked.id)
  const missing = order.map((choice, place) => ({ choice, place })).filter(({ choice }) => isMissing(choice))
  return order.find((choice, at) => {
    if (isMissing(choice)) return false
    return !missing.some(
      ({ choice: other, place }) =>
        (place < at || matchesBetter(other, choice)) && !maySubstitute(choice, other),
    )
  })
}

/** A paid agent never substitutes for a free one that matches better, nor a new agent for one with evidence. */
function maySubstitute(choice: Choice, better: Choice): boolean {
  if (choice.paid && !better.paid) return false
  return !(choice.newcomer && !better.newcomer)
}

/** Absent agents that may be back soon and score clearly better than the next choice. */
export function worthWaitingFor(order: readonly Choice[], next: Choice | undefined): Choice[] {
  const until = next === undefined ? order.length : order.indexOf(next)
  const least = next === undefined ? 0 : next.ranked.exactScore + equalScores + rounding
  return order.slice(0, until).filter(({ away, ranked }) => away?.soon === true && ranked.exactScore > least)
}

/** Whether `other` has the better skill match. A new agent that has not won never blocks an agent with evidence. */
function matchesBetter(other: Choice, choice: Choice): boolean {
  if (other.newcomer && !choice.newcomer) return false
  return other.ranked.matchOdds > choice.ranked.matchOdds
}

/** The candidates in the order of attempts, then those that cannot handle the task. Adds a reason if trust decided. */
export function explained(order: readonly Choice[], candidates: readonly RankedAgent[]): RankedAgent[] {
  const able = order.map(({ ranked, trust, newcomer }, at) => {
    const after = order.slice(at + 1)
    const isRaised = after.some((other) => other.ranked.exactScore > ranked.exactScore)
    const isHeldBack = newcomer && order.slice(0, at).some((other) => !other.newcomer)
    if (isHeldBack) return withReason(ranked, newcomerReason)
    return isRaised && trust !== 2 ? withReason(ranked, trustReasons[trust]) : ranked
  })
  return [...able, ...candidates.filter(({ canHandle }) => !canHandle)]
}

const withReason = (ranked: RankedAgent, reason: string): RankedAgent => ({
  ...ranked,
  reasons: [...ranked.reasons, reason],
})
const trustReasons = {
  0: 'preferred: supervised, within 0.05 of the best score',
  1: 'preferred: verified, within 0.05 of the best score',
}
const newcomerReason =
  'unverified new agent: receives at most 5 % of the messages that agents with evidence would win, until 20 of its tasks are completed'
