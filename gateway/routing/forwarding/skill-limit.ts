import { findRestCall } from '@parley/kit/http/rest-call'
import { dialects, partsOf } from '@parley/wire/codecs/dialects'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import { type Operation, operations } from '@parley/wire/model/operation'
import type { FastifyRequest } from 'fastify'
import type { AgentEntry } from '../../registry/entry.ts'
import type { ReadCall } from './call-reader.ts'

/** An agent that a request names, as its caller sees it. */
export interface FoundAgent {
  entry: AgentEntry
  /**
   * Set if the policy limits the caller to the skills of `entry`. Rejects for a skill that the caller may not use
   * (spec/policy.md#skills).
   */
  requireSkill?: (skill: string) => Promise<void>
}

/**
 * Returns the response to a request for the skills of an agent that is limited to some skills for its
 * caller, because the agent itself would list all of them.
 * @param path path on the agent, checked by `forwardPath`
 * @throws ParleyError SkillNotFound, InsufficientPermissions for the agent's own negotiation,
 * AuthenticatedExtendedCardNotConfigured
 */
export function limitedAnswer(
  { method, url }: Pick<FastifyRequest, 'method' | 'url'>,
  path: string,
  { slug, skills }: AgentEntry,
): object | undefined {
  // The agent's router decodes the path before it selects a route.
  const plain = decodeURIComponent(path)
  if (plain === '/agent/negotiation')
    throw new ParleyError('InsufficientPermissions', {
      message: `The policy limits you to some skills of agent ${slug}: negotiate with the gateway (POST /agent/negotiation)`,
      data: { reason: 'policy', agent: slug },
    })
  const { query } = partsOf(url)
  if (namesCard(findRestCall(method, path, query)?.route.operation))
    throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (plain === '/agent/skills') return { skills, total: skills.length }
  const name = /^\/agent\/skills\/([^/]+)/.exec(plain)?.[1]
  if (name !== undefined) {
    if (skills.some((skill) => skill.id === name || skill.name === name)) return undefined
    throw new ParleyError('SkillNotFound', { data: { reason: 'skill' } })
  }
  return undefined
}

/**
 * Checks the skills that a request names, and refuses a request for the agent's own extended card.
 * @param call undefined if the body is not a call in a dialect
 * @throws ParleyError InsufficientPermissions, InvalidRequest, AuthenticatedExtendedCardNotConfigured
 */
export async function requireAllowedSkills(
  body: Buffer,
  call: Pick<ReadCall, 'rest' | 'operation'> | undefined,
  requireSkill: NonNullable<FoundAgent['requireSkill']>,
): Promise<void> {
  if (namesCard(call?.operation)) throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
  if (body.byteLength === 0 && call?.rest !== undefined) return
  const json = jsonOf(body.toString('utf8'))
  // An agent could read the skill from a body that this check does not understand.
  if (!isObject(json)) throw new ParleyError('InvalidRequest', { message: 'Request must be a JSON object' })
  const { method, params } = json
  if (typeof method === 'string' && isCardMethod(method))
    throw new ParleyError('AuthenticatedExtendedCardNotConfigured')
  // Payment sessions name the skill in the body itself, and messages in their metadata, with or without an envelope.
  const messages = [json, params].flatMap((place) => (isObject(place) ? [place['message']] : []))
  const metadata = messages.map((message) => (isObject(message) ? message['metadata'] : undefined))
  for (const place of [json, ...metadata]) {
    const skill = isObject(place) ? skillIdIn(place) : undefined
    if (typeof skill === 'string') await requireSkill(skill)
  }
}

/** Whether a dialect has this method for the extended card. */
export function isCardMethod(method: string): boolean {
  return dialects.some(({ methods }) => namesCard(methods.get(method)?.operation))
}

const namesCard = (operation: Operation | undefined) =>
  operation !== undefined && operations[operation].target === 'server'
