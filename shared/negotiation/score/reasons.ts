import { snakeOf } from '@parley/wire/codecs/parley/spelling'
import { countedExamples, type Estimate, successOf } from './estimate.ts'
import { massOf } from './evidence.ts'
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

const learnedNamedMax = 3

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
    ...(knowledge.withoutEmbeddings === undefined
      ? []
      : [`ranked by words only: ${knowledge.withoutEmbeddings}`]),
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

function skillReason({ matches, subscores }: ReasonInput): string[] {
  const best = matches[0]
  if (best !== undefined) return [`skill ${best.skillId}: ${best.reasons.join('; ')}`]
  return [
    subscores.skillMatch > 0
      ? 'no single skill matches, but the agent as a whole does'
      : 'no skill matches the task',
  ]
}

function learnedReason({ query, knowledge, subscores }: ReasonInput): string[] {
  const { learned, isInExamples } = knowledge
  if (learned === undefined) return subscores.skillMatch > 0 ? newcomerReason(query, knowledge) : []
  const known = query.features
    .filter((feature) => isInExamples?.(feature) ?? true)
    .map((feature) => ({ feature, value: learned(feature) }))
  const best = (sign: number) =>
    known
      .filter(({ value }) => value * sign > 0)
      .sort((a, b) => (b.value - a.value) * sign)
      .slice(0, learnedNamedMax)
      .map(({ feature }) => `"${asWritten(feature, query)}"`)
      .join(', ')
  const good = best(1)
  const bad = best(-1)
  return [
    ...(good === '' ? [] : [`learned: succeeded with tasks about ${good}`]),
    ...(bad === '' ? [] : [`learned: failed with tasks about ${bad}`]),
  ]
}

/** A feature is a stem, or the stems of two neighbouring words. */
function asWritten(feature: string, { written }: Query): string {
  return feature
    .split(' ')
    .map((stem) => written().get(stem) ?? stem)
    .join(' ')
}

/** The reason given when only other agents have feedback for the text, so this agent gets the expected amount. */
const newcomerReason = (query: Query, knowledge: Knowledge): string[] =>
  (knowledge.feedbackMost?.(query, massOf(query, knowledge)) ?? 0) > 0
    ? ['no training examples yet: its description counts more']
    : []

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
