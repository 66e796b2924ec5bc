import { outgoingUrl, shownUrl } from '@parley/kit/net/outgoing-url'
import {
  type ForeignInterface,
  foreignCardPaths,
  isForeignCard,
  readForeignInterface,
  unsupportedSecurityText,
} from '@parley/wire/codecs/foreign-card'
import { type ListedSkill, readListedSkills } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { issuesIn, readCard } from '../registry/card.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { documentKeys, provableKeys } from './agent-document.ts'
import { type CardProof, verifyCardProof } from './card-proof.ts'
import type { GuardedClient } from './guarded-client.ts'
import { registrationError, toRegistrationError } from './registration-errors.ts'

/** The data that an agent serves at its address, checked for consistency. */
export interface FetchedAgent {
  name: string
  description: string
  card: JsonObject
  skills: ListedSkill[]
  did?: string
  /** The document of a DID whose keys are unproven. It is only displayed. */
  document?: JsonObject
  /** How the relay calls a foreign A2A agent. */
  relay?: ForeignInterface
  /** The result of verifying the signatures in the card of a foreign agent. */
  cardSignature?: NonNullable<AgentEntry['cardSignature']>
  /** Undefined if the agent has no DID or documents of the DID's method cannot be verified. */
  identity?: { document: JsonObject; keys: string[] }
}

export interface FetchOptions {
  client: GuardedClient
  /** Resolves a did:key or did:web. Resolves with undefined if the document is not found. */
  resolve: (did: string) => Promise<JsonObject | undefined>
}

/** @throws ParleyError InvalidParams if the address does not serve an agent or the agent's DID is invalid */
export async function fetchAgent(url: string, { client, resolve }: FetchOptions): Promise<FetchedAgent> {
  const json = await readCardAt(url, client)
  const { did, ...card } = cardOf(json)
  if (did === undefined && isForeignCard(json)) {
    const relay = relayOf(json, client)
    const proof = await verifyCardProof(json, { url, interfaceUrl: relay.url, resolve })
    const cardSignature = signatureOf(proof, 'supportedInterfaces' in json)
    return { ...card, relay, cardSignature }
  }
  const list = await client.get(`${url}/agent/skills`, 'The list of skills')
  const skills = list.status === 200 ? readListedSkills(list.json?.['skills']) : []
  const found = { ...card, skills: skills.length > 0 ? skills : card.skills }
  if (did === undefined) return found
  const document = await documentOf(did, url, { client, resolve })
  if (document === undefined) return { ...found, did }
  const keys = documentKeys(document, did)
  if (keys === undefined)
    throw registrationError(
      'did_document',
      'The DID document does not belong to the DID on the card, or lists no key of it',
    )
  const bound = provableKeys(did, keys)
  return bound.length === 0
    ? { ...found, did, document }
    : { ...found, did, identity: { document, keys: bound } }
}

/**
 * The signature counts if it covers the whole card, or all of its fields that A2A defines. Without the security schemes, it does
 * not cover the addresses that receive credentials. A signature over the fields of 0.3 does not cover the interfaces of 1.0.
 */
function signatureOf(proof: CardProof, isOfV1: boolean): NonNullable<AgentEntry['cardSignature']> {
  if (!proof.verified) return { verified: false, reason: proof.reason }
  const { covers } = proof
  if (covers === 'a2a-without-security' || (covers === 'a2a-v03' && isOfV1))
    return { verified: false, reason: 'partial' }
  return { verified: true, kid: proof.kid }
}

async function readCardAt(url: string, client: GuardedClient): Promise<JsonObject> {
  const first = await client.get(url + foreignCardPaths[0], 'The card')
  if (first.status === 200 && first.json !== undefined) return first.json
  const second = await client.get(url + foreignCardPaths[1], 'The card')
  if (second.status === 200 && second.json !== undefined) return second.json
  if (first.status === 200 || second.status === 200)
    throw registrationError('not_json', 'The card is not a JSON object')
  const statuses = [first, second]
    .map(({ status }, i) => `${foreignCardPaths[i]} returned HTTP ${status}`)
    .join(', ')
  const isRedirect = [first, second].some(({ status }) => status >= 300 && status < 400)
  const how = isRedirect
    ? 'Redirects are not followed'
    : 'Register the address below which the card is, and an MCP server with --mcp'
  throw registrationError('status', `There is no card: ${statuses}. ${how}`)
}

/** @throws ParleyError InvalidParams if the agent cannot be called */
function relayOf(json: JsonObject, { allowed }: GuardedClient): ForeignInterface {
  const read = readForeignInterface(json)
  if (typeof read === 'string') throw registrationError('interface', read)
  const urls = read.security.flatMap((scheme) => (scheme.kind === 'oauth2' ? [scheme.tokenUrl] : []))
  for (const url of [read.url, ...urls]) {
    try {
      outgoingUrl(url, allowed)
    } catch (error) {
      throw toRegistrationError(error, `The address ${shownUrl(url)} in the card`)
    }
  }
  if (read.unsupportedSecurity) throw registrationError('security', unsupportedSecurityText)
  return read
}

function cardOf(json: JsonObject) {
  try {
    return readCard(json)
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    throw registrationError('card', `The card is not an agent card: ${issuesIn(error)}`, error)
  }
}

/**
 * Reads did:parley and did:bindu documents from the agent, and resolves did:key and did:web by their method.
 */
async function documentOf(did: string, url: string, { client, resolve }: FetchOptions) {
  const method = /^did:([a-z0-9]+):[\w.:%-]+$/.exec(did)?.[1]
  if (method === undefined) throw registrationError('did', 'The DID on the card is malformed')
  if (method === 'parley' || method === 'bindu')
    return client.getObject(`${url}/did/resolve?did=${encodeURIComponent(did)}`, 'The DID document')
  if (method !== 'key' && method !== 'web') return undefined
  const document = await resolve(did)
  if (document === undefined)
    throw registrationError('did_document', 'The DID on the card cannot be resolved')
  return document
}
