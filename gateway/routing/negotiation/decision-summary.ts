import type { DecisionSummary } from '../store/routing-store.ts'
import type { Decision, DeliveryAttempt } from './negotiator.ts'

const textMaxChars = 300
const wordsMaxChars = 1000

interface Context {
  method: string
  chosen: string | undefined
  trace: string | undefined
  text: string | undefined
}

/** The part of a decision that lists show and searches find. */
export function summaryOf(
  { answer, order, ranking, tried }: Pick<Decision, 'answer' | 'order' | 'ranking' | 'tried'>,
  { method, chosen, trace, text }: Context,
): DecisionSummary {
  const { candidates, candidatesTotal, excludedTotal } = answer
  const won = candidates.find(({ agent }) => agent.slug === chosen)?.answer
  const runnerUp = ranking.candidates.find(({ slug, canHandle }) => canHandle && slug !== chosen)
  const score = won?.score ?? order.find(({ ranked }) => ranked.slug === chosen)?.ranked.score
  return {
    method,
    outcome: outcomeOf(method, chosen, tried),
    ...(chosen !== undefined && { chosen }),
    ...(score !== undefined && { score }),
    ...(runnerUp !== undefined && { runnerUp: { agent: runnerUp.slug, score: runnerUp.score } }),
    candidatesTotal,
    excludedTotal,
    ...(trace !== undefined && { traceId: trace }),
    ...(text !== undefined && text !== '' && { text: text.slice(0, textMaxChars).toWellFormed() }),
    words: wordsOf(candidates.slice(0, 3)),
  }
}

function outcomeOf(
  method: string,
  chosen: string | undefined,
  tried: readonly DeliveryAttempt[],
): DecisionSummary['outcome'] {
  if (method === 'agent/negotiation') return 'answered'
  if (chosen !== undefined) return 'accepted'
  return tried.length > 0 ? 'rejected' : 'none'
}

function wordsOf(candidates: Decision['answer']['candidates']): string {
  const texts = candidates.flatMap(({ agent, answer }) => [agent.slug, agent.name, ...answer.reasons])
  return texts.join(' ').slice(0, wordsMaxChars).toWellFormed().toLowerCase()
}

/** The agent that has or may have accepted the message. */
export function takenBy(tried: readonly DeliveryAttempt[]): string | undefined {
  return tried.findLast(({ outcome }) => outcome === 'answered' || outcome === 'unknown')?.agent
}
