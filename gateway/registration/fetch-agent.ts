import { type ListedSkill, readListedSkills } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { readCard } from '../registry/card.ts'
import { boundKeys, documentKeys } from './agent-document.ts'
import type { GuardedClient } from './guarded-client.ts'
import { refused } from './registration-errors.ts'

/** What an agent says of itself at its address, as far as it holds together. */
export interface FetchedAgent {
  name: string
  description: string
  card: JsonObject
  skills: ListedSkill[]
  did?: string
  /** Document of a DID whose keys are not proven: for display only. */
  document?: JsonObject
  /** Absent: it has no DID, or one of a method whose documents cannot be checked. */
  identity?: { document: JsonObject; keys: string[] }
}

export interface FetchOptions {
  outside: GuardedClient
  /** Documents of did:key and did:web; undefined when there is none. */
  resolve: (did: string) => Promise<JsonObject | undefined>
}

/** @throws ParleyError InvalidParams when the address does not answer as an agent, or lies about its DID */
export async function fetchAgent(url: string, { outside, resolve }: FetchOptions): Promise<FetchedAgent> {
  const json = await outside.getObject(`${url}/.well-known/agent.json`, 'The card')
  const { did, ...card } = cardOf(json)
  const list = await outside.get(`${url}/agent/skills`, 'The list of skills')
  const skills = list.status === 200 ? readListedSkills(list.json?.['skills']) : []
  const found = { ...card, skills: skills.length > 0 ? skills : card.skills }
  if (did === undefined) return found
  const document = await documentOf(did, url, { outside, resolve })
  if (document === undefined) return { ...found, did }
  const keys = documentKeys(document, did)
  if (keys === undefined)
    throw refused(
      'did_document',
      'The DID document is not that of the DID on the card, or holds no key of it',
    )
  const bound = boundKeys(did, keys)
  return bound.length === 0
    ? { ...found, did, document }
    : { ...found, did, identity: { document, keys: bound } }
}

function cardOf(json: JsonObject) {
  try {
    return readCard(json)
  } catch (error) {
    if (error instanceof ParleyError) throw refused('card', 'The card is not that of an agent', error)
    throw error
  }
}

/** Documents of did:parley and did:bindu are read from the agent; those of other methods from where the method says. */
async function documentOf(did: string, url: string, { outside, resolve }: FetchOptions) {
  const method = /^did:([a-z0-9]+):[\w.:%-]+$/.exec(did)?.[1]
  if (method === undefined) throw refused('did', 'The DID on the card is malformed')
  if (method === 'parley' || method === 'bindu')
    return outside.getObject(`${url}/did/resolve?did=${encodeURIComponent(did)}`, 'The DID document')
  if (method !== 'key' && method !== 'web') return undefined
  const document = await resolve(did)
  if (document === undefined) throw refused('did_document', 'The DID on the card cannot be resolved')
  return document
}
