import { access } from 'node:fs/promises'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Agent, resolveAgent } from './agent.ts'
import type { AgentDefinition } from './define-agent.ts'
import { readSkillFiles } from './skill-file.ts'

/** Names that the file of an agent may have, in this order. */
export const agentFiles = ['agent.ts', 'agent.js', 'agent.mjs'] as const

/** @throws Error when the folder holds no agent, or one whose definition is faulty. */
export async function loadAgent(folder: string): Promise<Agent> {
  const file = await agentFileOf(folder)
  if (file === undefined) throw new Error(`${folder} holds no ${agentFiles.join(', ')}.`)
  const module = (await import(pathToFileURL(file).href)) as { default?: AgentDefinition }
  if (module.default === undefined) throw new Error(`${file} must export its agent as default.`)
  return resolveAgent(module.default, await readSkillFiles(path.join(folder, 'skills')))
}

export async function agentFileOf(folder: string): Promise<string | undefined> {
  for (const name of agentFiles) {
    const file = path.resolve(folder, name)
    const there = await access(file).then(
      () => true,
      () => false,
    )
    if (there) return file
  }
  return undefined
}
