import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { isObject } from '@parley/wire/jsonrpc/envelope'

/** A skill's fields, which `resolveAgent` checks. */
export type SkillFields = Record<string, unknown>

/** Reads skills from `skills/<id>.md`: fields (snake_case or camelCase) in the front matter, then the documentation. */
export async function readSkillFiles(folder: string): Promise<SkillFields[]> {
  const skills: SkillFields[] = []
  for (const name of (await filesOf(folder)).filter((file) => file.endsWith('.md')).sort()) {
    const text = await readFile(path.join(folder, name), 'utf8')
    skills.push(await readSkill(text, name.slice(0, -'.md'.length)))
  }
  return skills
}

/** @throws Error when the text does not begin with front matter that is a YAML mapping */
async function readSkill(text: string, id: string): Promise<SkillFields> {
  // Loaded on use, because an agent may define its skills in code.
  const { parse } = await import('yaml')
  const match = /^---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n([\s\S]*))?$/.exec(text)
  const fields: unknown = match?.[1] === undefined ? undefined : parse(match[1])
  if (!isObject(fields)) throw new Error(`skills/${id}.md must begin with front matter between lines of ---.`)
  const documentation = match?.[2]?.trim()
  const skill = { id, ...withCamelCase(fields) }
  return documentation === undefined || documentation === '' ? skill : { ...skill, documentation }
}

/** Converts field names to camelCase. The author chooses the names below `capabilities_detail`, so they stay unchanged. */
function withCamelCase(fields: SkillFields): SkillFields {
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]) => {
      const camel = key.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
      return [camel, camel !== 'capabilitiesDetail' && isObject(value) ? withCamelCase(value) : value]
    }),
  )
}

async function filesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}
