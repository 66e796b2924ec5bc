import { boundedText } from '@parley/kit/net/bounded-text'
import type { Offer } from '@parley/negotiation/score/offer'
import { defaultWeights } from '@parley/negotiation/score/weights'
import { queryOut, type ReadNegotiation, readNegotiation } from '@parley/wire/codecs/parley/negotiation'
import { readEntry } from '@parley/wire/codecs/parley/registry'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { oneLine, slugMax } from '../terminal/printable.ts'
import type { DescribedAgent, Finding, TriedExample } from './check-agent.ts'

export interface ExampleCheck {
  agent: DescribedAgent
  /** The address of the gateway at which the examples are tried. It receives no token. */
  gateway: string
  /** The score that an agent needs to get a message that names no agent. */
  minScore: number
}

/** Maximum number of examples that are tried. */
const examplesMax = 20
const exampleMaxChars = 1000
/** A gateway ignores all examples of a skill that has more than this number. */
const examplesPerSkillMax = 500
const limitMs = 10_000
const answerMaxBytes = 4 * 1024 * 1024
/** The number of candidates among which the score of a registered agent is looked up. */
const candidatesMax = 100
const quotedMaxChars = 80

const what = 'examples'

interface Example {
  skill: string
  text: string
}

/** The entry of the checked agent at the gateway. */
interface OwnEntry {
  slug: string
  /** Why the agent receives no messages; undefined if it may. */
  excluded?: string
}

/**
 * Negotiates the examples of an agent's skills at a gateway, as a caller without a token. No message is sent to any agent.
 * Returns remarks only, because an example that another agent would win does not make the agent faulty.
 */
export async function checkExamples({ agent, gateway, minScore }: ExampleCheck): Promise<Finding[]> {
  const { examples, remarks } = await examplesOf(agent)
  if (examples.length === 0) return remarks
  try {
    const own = await ownEntry(agent, gateway)
    const offer = await ownOffer(agent)
    const findings: Finding[] = []
    for (const example of examples) findings.push(await tried(example, { gateway, minScore, own, offer }))
    return [...remarks, ...registrationRemark(own, gateway), ...findings]
  } catch (error) {
    const why = error instanceof NoGateway ? error.message : `${gateway} does not answer`
    const how = 'Start the gateway (npx parley up), or name one with --registry <gateway url>'
    return [...remarks, { what, note: `Not tried: ${why}. ${how}.` }]
  }
}

class NoGateway extends Error {
  override readonly name = 'NoGateway'
}

/** Returns the first examples of all skills, which a gateway would use too. */
async function examplesOf({ skills }: DescribedAgent) {
  const { readListedSkills } = await import('@parley/wire/codecs/parley/skills')
  const listed = readListedSkills(skills)
  const remarks: Finding[] = []
  const examples: Example[] = []
  let total = 0
  for (const { id, examples: given } of listed) {
    if (!Array.isArray(given)) continue
    const texts = given.filter((text) => typeof text === 'string')
    total += texts.length
    const fault = faultOf(texts)
    if (fault !== undefined)
      remarks.push({ what, note: `Skill ${shown(id)} has ${fault}, so gateways ignore all of its examples.` })
    for (const text of texts)
      if (text.trim() !== '' && text.length <= exampleMaxChars && examples.length < examplesMax)
        examples.push({ skill: id, text })
  }
  if (total === 0 && listed.length > 0) {
    const note = 'The skills list no examples. With examples, similar messages find the agent more often.'
    return { examples, remarks: [{ what, note }] }
  }
  const isBounded = examples.length === examplesMax && total > examplesMax
  const bound = {
    what,
    note: `${total.toLocaleString('en')} examples: only the first ${examplesMax} are tried.`,
  }
  return { examples, remarks: [...remarks.slice(0, examplesMax), ...(isBounded ? [bound] : [])] }
}

function faultOf(texts: readonly string[]): string | undefined {
  if (texts.length > examplesPerSkillMax) return `more than ${examplesPerSkillMax} examples`
  const isLong = texts.some((text) => text.length > exampleMaxChars)
  return isLong ? `an example of more than ${exampleMaxChars.toLocaleString('en')} characters` : undefined
}

/** Finds the entry of the agent by its address below the gateway, its DID, or its name and address. */
async function ownEntry({ base, card }: DescribedAgent, gateway: string): Promise<OwnEntry | undefined> {
  const { slugOf } = await import('@parley/gateway/registry/slug')
  const { did, name } = card
  const below = base.startsWith(`${gateway}/agents/`) ? base.slice(`${gateway}/agents/`.length) : undefined
  const names = [below, did, typeof name === 'string' ? slugOf(name.slice(0, 512)) : undefined]
  for (const one of names) {
    if (typeof one !== 'string' || one.length > 512) continue
    const { status, json } = await read(`${gateway}/registry/agents/${encodeURIComponent(one)}`)
    if (status !== 200) continue
    const { slug, tokenResource, admitted, quarantined, status: state } = readEntry(json)
    // A name alone may belong to another agent.
    const isOwn = one === below || one === did || tokenResource === base
    if (slug === undefined || !isOwn) continue
    if (admitted === false) return { slug, excluded: 'not admitted' }
    if (quarantined === true) return { slug, excluded: 'quarantined' }
    return state === undefined || state === 'ready' ? { slug } : { slug, excluded: state }
  }
  return undefined
}

function registrationRemark(own: OwnEntry | undefined, gateway: string): Finding[] {
  const local = 'its score is computed without what the gateway has learned'
  if (own === undefined) return [{ what, note: `The agent is not registered at ${gateway}: ${local}.` }]
  if (own.excluded === undefined) return []
  const state = `registered as ${shown(own.slug)}, but receives no messages (${shown(own.excluded)})`
  return [{ what, note: `The agent is ${state}: ${local}.` }]
}

/** The offer with which a gateway would rank the agent. Undefined if no gateway would accept its card. */
async function ownOffer({ card, skills }: DescribedAgent): Promise<Offer | undefined> {
  const { readCard } = await import('@parley/gateway/registry/card')
  const { offerOf } = await import('@parley/gateway/routing/negotiation/offer')
  const { readListedSkills } = await import('@parley/wire/codecs/parley/skills')
  const { ParleyError } = await import('@parley/wire/errors')
  try {
    return offerOf({ ...readCard(card), skills: readListedSkills(skills), load: {} })
  } catch (error) {
    if (error instanceof ParleyError) return undefined
    throw error
  }
}

interface Trial {
  gateway: string
  minScore: number
  own: OwnEntry | undefined
  offer: Offer | undefined
}

async function tried(example: Example, { gateway, minScore, own, offer }: Trial): Promise<Finding> {
  const { text } = example
  // The query is that of a message with this text and no other parts.
  const query = { taskSummary: text, inputMimeTypes: ['text/plain'], weights: defaultWeights, minScore }
  const answer = await negotiated(gateway, queryOut({ ...query, limit: candidatesMax }))
  const candidate = answer.candidates?.find(({ agent }) => own !== undefined && agent?.slug === own.slug)
  const { negotiate } = await import('@parley/negotiation/score/negotiate')
  const local = offer && negotiate(offer, query)
  const isOfGateway = own !== undefined && own.excluded === undefined
  const ownScore = (isOfGateway ? candidate?.score : local?.score) ?? 0
  const winner = answer.canHandle === true ? answer.agent?.slug : undefined
  const score = answer.score ?? 0
  const beatsAll = local?.canHandle === true && (winner === undefined || local.score > score)
  const wins = isOfGateway ? winner !== undefined && winner === own.slug : beatsAll
  return findingOf(
    {
      ...example,
      winner: wins ? (own?.slug ?? null) : (winner ?? null),
      score: wins ? ownScore : score,
      wins,
      ownScore,
      ownScoreIsOfGateway: isOfGateway,
    },
    minScore,
  )
}

function findingOf(example: TriedExample, minScore: number): Finding {
  const { text, winner, score, wins, ownScore } = example
  const quoted = `"${oneLine(text.length > quotedMaxChars ? `${text.slice(0, quotedMaxChars)}…` : text)}"`
  if (wins) return { what, info: `${quoted} would go to this agent (${figure(ownScore)}).`, example }
  if (winner === null) {
    const next = 'Add the words of the example to the skill’s description, or remove the example'
    const note = `${quoted} would go to no agent: ${figure(minScore)} is needed; this agent scores ${figure(ownScore)}. ${next}.`
    return { what, note, example }
  }
  const next = 'Make the example or the skill’s description more specific, or remove the example'
  const note = `${quoted} would go to ${shown(winner)} (${figure(score)}); this agent scores ${figure(ownScore)}. ${next}.`
  return { what, note, example }
}

const figure = (score: number) => (Number.isFinite(score) ? score : 0).toFixed(2)
const shown = (text: string) => oneLine(text, slugMax)

async function negotiated(gateway: string, query: JsonObject): Promise<ReadNegotiation> {
  const { status, json } = await read(`${gateway}/agent/negotiation`, query)
  if (status === 429) throw new NoGateway(`${gateway} receives too many requests`)
  if (status !== 200 || json === undefined || !isObject(json) || !('candidates' in json))
    throw new NoGateway(`${gateway} does not answer as a gateway does (HTTP ${status})`)
  return readNegotiation(json)
}

/** Sends a request without a token, because the address may be that of any server. */
async function read(url: string, body?: JsonObject) {
  const response = await fetch(url, {
    ...(body && {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    }),
    redirect: 'manual',
    signal: AbortSignal.timeout(limitMs),
  })
  return { status: response.status, json: jsonObjectOf(await boundedText(response.body, answerMaxBytes)) }
}
