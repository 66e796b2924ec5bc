import { isDid } from '@parley/kit/did/did'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import type { AgentSkill } from './entry.ts'

const line = z.string().max(512)
const text = z.string().max(16_384)
const words = z.array(line).max(256)

/** What the registry reads of a card; the whole card is kept as it came. */
const card = z.looseObject({
  name: line.min(1),
  description: text.default(''),
  did: line.startsWith('did:').optional(),
  skills: z.array(z.unknown()).max(1000).default([]),
})

/** A skill of a card (camelCase) or of `GET /agent/skills` (snake_case). */
const skill = z.looseObject({
  id: line.min(1),
  name: line.optional(),
  description: text.default(''),
  tags: words.default([]),
  input_modes: words.optional(),
  inputModes: words.optional(),
  output_modes: words.optional(),
  outputModes: words.optional(),
})

export interface ReadCard {
  name: string
  description: string
  did?: string
  skills: AgentSkill[]
  card: JsonObject
}

/** @throws ParleyError InvalidParams when it is not the card of an agent. */
export function readCard(json: JsonObject): ReadCard {
  const parsed = card.safeParse(json)
  if (!parsed.success) {
    const issues = parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }))
    throw new ParleyError('InvalidParams', { message: 'Not the card of an agent', data: { issues } })
  }
  const { name, description, skills } = parsed.data
  const did = parsed.data.did ?? extensionDid(json)
  return { name, description, ...(did !== undefined && { did }), skills: readSkills(skills), card: json }
}

/** Cards of the reference implementation have no `did`: it is the URI of an extension. */
function extensionDid({ capabilities }: JsonObject): string | undefined {
  const extensions = isObject(capabilities) ? capabilities['extensions'] : undefined
  if (!Array.isArray(extensions)) return undefined
  const uris = extensions
    .slice(0, 100)
    .map((extension) => (isObject(extension) ? extension['uri'] : undefined))
  return uris.find((uri): uri is string => typeof uri === 'string' && isDid(uri))
}

/** What cannot be a skill is left out: one odd skill must not keep an agent from its work. */
export function readSkills(list: unknown): AgentSkill[] {
  if (!Array.isArray(list)) return []
  return list.slice(0, 1000).flatMap((item) => {
    const parsed = skill.safeParse(item)
    if (!parsed.success) return []
    const { input_modes, inputModes, output_modes, outputModes, documentationPath, ...rest } = parsed.data
    return {
      ...(rest as JsonObject),
      ...(documentationPath !== undefined && { documentation_path: documentationPath as string }),
      id: rest.id,
      name: rest.name ?? rest.id,
      description: rest.description,
      tags: rest.tags,
      input_modes: input_modes ?? inputModes ?? [],
      output_modes: output_modes ?? outputModes ?? [],
    }
  })
}
