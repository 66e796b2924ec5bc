import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parse } from 'yaml'
import type { SkillDefinition } from './define-agent.ts'

/** Skills written as `skills/<id>.md`: front matter holds the fields (either spelling), the text is the documentation. */
export async function readSkillFiles(folder: string): Promise<SkillDefinition[]> {
  const skills: SkillDefinition[] = []
  for (const name of (await filesOf(folder)).filter((file) => file.endsWith('.md')).sort()) {
    const text = await readFile(path.join(folder, name), 'utf8')
    skills.push(readSkill(text, name.slice(0, -'.md'.length)))
  }
  return skills
}

/** @throws Error when the text has no front matter that is a YAML mapping. */
export function readSkill(text: string, id: string): SkillDefinition {
  const match = /^---\r?\n([\s\S]*?)\r?\n---[ \t]*(?:\r?\n([\s\S]*))?$/.exec(text)
  const fields: unknown = match === null ? undefined : parse(match[1] as string)
  if (!isObject(fields)) throw new Error(`skills/${id}.md must begin with front matter between lines of ---.`)
  const documentation = match?.[2]?.trim()
  const skill = { id, ...(camelCased(fields) as object) } as SkillDefinition
  return documentation === undefined || documentation === '' ? skill : { ...skill, documentation }
}

/** What stands under `capabilities_detail` is the author's own and keeps its names. */
function camelCased(value: unknown): unknown {
  if (Array.isArray(value) || !isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      const camel = key.replace(/_([a-z])/g, (_all, letter: string) => letter.toUpperCase())
      return [camel, camel === 'capabilitiesDetail' ? inner : camelCased(inner)]
    }),
  )
}

async function filesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
