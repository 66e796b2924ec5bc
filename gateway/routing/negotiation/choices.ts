import type { Ranked } from '@parley/negotiation/index/agent-index'
import { isNewcomer } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { isPaidAgent } from '../placement/agent-prices.ts'
import { type Absence, exclusionOf } from './availability.ts'

/** Scores that differ by no more than this are equal; trust decides between them. */
export const equalScores = 0.05
const rounding = 1e-9

/** An agent that can handle a message, with what decides whether it gets it. */
export interface Choice {
  ranked: Ranked
  trust: Trust
  paid: boolean
  /** Unverified, with too few completed tasks of its own. */
  newcomer: boolean
  /** Undefined: it is present. */
  away: Absence | undefined
}

/** Supervised agents come before verified ones, these before all others. */
export type Trust = 0 | 1 | 2

export function trustOf({ origin, verified }: Pick<AgentEntry, 'origin' | 'verified'>): Trust {
  if (origin === 'supervised') return 0
  return verified ? 1 : 2
}

/** Undefined: it is excluded, and not expected back. */
export function choiceOf(ranked: Ranked, entry: AgentEntry, away: Absence | undefined): Choice | undefined {
  if (away === undefined && exclusionOf(entry) !== undefined) return undefined
  return { ranked, trust: trustOf(entry), paid: isPaidAgent(entry), newcomer: isNewcomer(entry), away }
}

/**
 * The order in which agents are tried. Among scores within 0.05 of the best, trust decides; newcomers come last while an
 * agent with evidence is among the choices, unless the share of newcomers lets the first of them win.
 * @param choices by score, best first
 * @param newcomerWins whether a newcomer may take a message that the named agent would win
 */
export function inOrder(choices: readonly Choice[], newcomerWins: (evidenced: string) => boolean): Choice[] {
  const least = (choices[0]?.ranked.exactScore ?? 0) - equalScores - rounding
  const equal = choices.filter(({ ranked }) => ranked.exactScore >= least)
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

/** The next agent to try; undefined where none is left that may take the place of those that did not take the message. */
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

/** A paid agent never substitutes for a free one that matches better, a newcomer never for an agent with evidence. */
function maySubstitute(choice: Choice, better: Choice): boolean {
  if (choice.paid && !better.paid) return false
  return !(choice.newcomer && !better.newcomer)
}

/** Agents that may be back in a moment and are clearly better than the next choice. */
export function worthWaitingFor(order: readonly Choice[], next: Choice | undefined): Choice[] {
  const until = next === undefined ? order.length : order.indexOf(next)
  const least = next === undefined ? 0 : next.ranked.exactScore + equalScores + rounding
  return order.slice(0, until).filter(({ away, ranked }) => away?.soon === true && ranked.exactScore > least)
}

/** A newcomer that has not won the message keeps it from no agent with evidence. */
function matchesBetter(other: Choice, choice: Choice): boolean {
  if (other.newcomer && !choice.newcomer) return false
  return other.ranked.subscores.skillMatch > choice.ranked.subscores.skillMatch
}
