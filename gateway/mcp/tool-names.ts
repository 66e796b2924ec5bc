import { createHash } from 'node:crypto'

/** MCP allows more characters, but many hosts and models accept only these, and at most 64 of them. */
const acceptedName = /^[A-Za-z0-9_-]{1,64}$/
const hashChars = 12
/**
 * A name that ends like a shortened one is itself shortened, so that no skill can take the name of another. A hash begins
 * with a digit, so that no word looks like one.
 */
const looksShortened = new RegExp(`_[0-9][0-9a-z]{${hashChars - 1}}$`)

/** The tools that the gateway adds to those of the agents. */
export const gatewayTools = [
  'find_agent',
  'ask_best_agent',
  'get_task',
  'answer_task',
  'cancel_task',
] as const
export type GatewayTool = (typeof gatewayTools)[number]

const reserved = new Set<string>(gatewayTools)

export function isGatewayTool(name: string): name is GatewayTool {
  return reserved.has(name)
}

/**
 * Returns the name of the tool of a skill: `{slug}__{skill}`, or the skill's ID at the address of the agent. A name that
 * would be too long, contain other characters or be taken ends with a hash of the agent and the skill. Slugs contain no
 * underscore, so no two skills have the same name.
 * @param slug undefined at the address of the agent
 */
export function toolNameOf(slug: string | undefined, skillId: string): string {
  const name = slug === undefined ? skillId : `${slug}__${skillId}`
  if (acceptedName.test(name) && !looksShortened.test(name) && !reserved.has(name)) return name
  const digest = createHash('sha256')
    .update(JSON.stringify([slug ?? null, skillId]))
    .digest()
  const letters = digest.readBigUInt64BE().toString(36).padStart(hashChars, '0')
  const hash = `${(digest[8] ?? 0) % 10}${letters.slice(-(hashChars - 1))}`
  return `${name.replace(/[^A-Za-z0-9_-]+/g, '_').slice(0, 63 - hashChars)}_${hash}`
}

/** Returns the slug and the skill in an unshortened name. */
export function partsOfName(name: string): { slug: string; skillId: string } | undefined {
  const at = name.indexOf('__')
  return at <= 0 ? undefined : { slug: name.slice(0, at), skillId: name.slice(at + 2) }
}
