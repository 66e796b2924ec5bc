import { snakeOf } from '@parley/wire/codecs/parley/spelling'
import { countedExamples, type Estimate, successOf } from './estimate.ts'
import type { Knowledge } from './knowledge.ts'
import type { ExampleResults, Offer } from './offer.ts'
import type { Query } from './query.ts'
import type { NegotiationRequest } from './request.ts'
import type { SkillMatch } from './skill-match.ts'
import type { Subscores } from './weights.ts'

interface ReasonInput {
  offer: Offer
  subscores: Subscores
  matches: readonly SkillMatch[]
  estimate: Estimate
  query: Query
  knowledge: Knowledge
}

/** The reasons for a score as short sentences. Reasons from the gateway's knowledge are marked. */
export function reasonsOf(input: ReasonInput): string[] {
  const { offer, subscores, estimate, knowledge } = input
  return [
    ...skillReason(input),
    ...learnedReason(input),
    `input and output types fit ${Math.round(subscores.ioCompatibility * 100)} %`,
    ...speedReason(estimate),
    ...successReason(offer),
    queueReason(offer),
    ...costReason(offer),
    ...methodReason(knowledge),
  ]
}

/**
 * The contract requires `weights` (spec/negotiation.md#weights). A client that omits them is informed of
 * the defaults.
 */
export function defaultsReason({ weightsAreDefault, weights }: NegotiationRequest): string[] {
  if (weightsAreDefault !== true) return []
  const named = Object.entries(weights).map(([name, value]) => `${snakeOf(name)} ${value}`)
  return [`no weights given: the defaults apply (${named.join(', ')})`]
}

/** An agent with a lower match is not said to match as a whole. */
const clearMatch = 0.4

function skillReason({ matches, subscores }: ReasonInput): string[] {
  const [best] = matches
  if (best !== undefined && best.reasons.length > 0)
    return [`skill “${best.skillName}”: ${best.reasons.join('; ')}`]
  return [
    subscores.skillMatch >= clearMatch
      ? 'no single skill matches clearly, but the agent as a whole does'
      : subscores.skillMatch > 0
        ? 'no skill matches clearly'
        : 'no skill matches the task',
  ]
}

function learnedReason({ query, knowledge, subscores }: ReasonInput): string[] {
  const learned = knowledge.learned?.(query)
  if (learned === undefined) return []
  const { evidence, known, most } = learned
  const similar = learned.similar()
  return [
    ...(evidence > 0 && similar.good > 0
      ? [`learned: did ${tasks(similar.good)} well, as ${callers(similar.callers.good)} rated`]
      : []),
    ...(evidence > 0 && similar.users > 0
      ? [`learned: ${callers(similar.users)} used it again after similar tasks`]
      : []),
    ...(evidence < 0
      ? [`learned: ${tasks(similar.bad)} of ${callers(similar.callers.bad)} failed or were rated badly`]
      : []),
    ...(known === 0 && most > 0 && subscores.skillMatch > 0
      ? ['no ratings for such tasks yet: its description counts more']
      : []),
  ]
}

const callers = (count: number) => (count === 1 ? 'one caller' : `${count} callers`)
const tasks = (count: number) => (count === 1 ? 'a similar task' : `${count} similar tasks`)

/** Says whether sentence vectors were compared, and why not if they should have been. */
function methodReason({ nearness: near, withoutEmbeddings }: Knowledge): string[] {
  if (withoutEmbeddings !== undefined) return [`ranked by words only: ${withoutEmbeddings}`]
  return near === undefined ? [] : ['ranked by words and meaning']
}

function speedReason({ latencyMs, measured }: Estimate): string[] {
  return latencyMs === undefined
    ? []
    : [`takes about ${latencyMs} ms (${measured ? 'measured' : 'declared'})`]
}

function successReason(offer: Offer): string[] {
  const examples = countedExamples(offer)
  if (examples !== undefined) return exampleReason(examples)
  const share = successOf(offer)
  return share === undefined || share === 1
    ? []
    : [`${Math.round(share * 100)} % of its tasks succeeded (measured)`]
}

function exampleReason({ completed, tried }: ExampleResults): string[] {
  if (completed >= tried) return []
  return completed === 0
    ? [`its own examples failed when the gateway tried them (0 of ${tried})`]
    : [`completed ${completed} of ${tried} of its own examples when the gateway tried them`]
}

function queueReason({ queueDepth, activeTasks }: Offer): string {
  const running = activeTasks === undefined || activeTasks === 0 ? '' : `, ${activeTasks} running`
  return `${queueDepth === 0 ? 'no waiting tasks' : `waiting tasks: ${queueDepth}`}${running}`
}

const costReason = ({ price }: Offer): string[] => (price === undefined ? [] : [`costs ${price.amount}`])
