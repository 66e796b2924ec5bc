import { isDid } from '@parley/kit/did/did'
import { type ListedSkill, readListedSkills } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'

const line = z.string().max(512)
const text = z.string().max(16_384)

/** The fields of a card that the registry reads. The whole card is stored unchanged. */
const card = z.looseObject({
  name: line.min(1),
  description: text.default(''),
  did: line.startsWith('did:').optional(),
  skills: z.array(z.unknown()).max(1000).default([]),
})

export interface ReadCard {
  name: string
  description: string
  did?: string
  skills: ListedSkill[]
  card: JsonObject
}

/** Returns the issues of an error of `readCard` as text. */
export function issuesIn({ data }: ParleyError): string {
  const issues: unknown[] = Array.isArray(data['issues']) ? data['issues'] : []
  return issues
    .filter(isObject)
    .map(({ path: at, message }) => `${String(at)}: ${String(message)}`)
    .join('; ')
}

/** @throws ParleyError InvalidParams if the object is not an agent card */
export function readCard(json: JsonObject): ReadCard {
  const parsed = card.safeParse(json)
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }))
    throw new ParleyError('InvalidParams', { message: 'Not an agent card', data: { issues } })
  }
  const { name, description, skills } = parsed.data
  const did = parsed.data.did ?? extensionDid(json)
  return {
    name,
    description,
    ...(did !== undefined && { did }),
    skills: readListedSkills(skills),
    card: json,
  }
}

/** Returns the DID from an extension's URI, because the reference implementation's cards have no `did`. */
function extensionDid({ capabilities }: JsonObject): string | undefined {
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined
  if (!Array.isArray(extensions)) return undefined
  const uris = extensions
    .slice(0, 100)
    .map((extension) => (isObject(extension) ? extension['uri'] : undefined))
  return uris.find((uri): uri is string => typeof uri === 'string' && isDid(uri))
}
