import { access } from 'node:fs/promises'
import path from 'node:path'

/** File names of an agent, in order of precedence. */
export const agentFiles = ['agent.ts', 'agent.js', 'agent.mjs', 'agent.yaml'] as const

/** Returns the agent's file in `folder`; undefined if there is none. */
export async function agentFileOf(folder: string): Promise<string | undefined> {
  for (const name of agentFiles) {
    const file = path.resolve(folder, name)
    const exists = await access(file).then(
      () => true,
      () => false,
    )
    if (exists) return file
  }
  return undefined
}

/** Whether the file is a manifest and not the code of an agent. */
export const isManifest = (file: string | undefined): boolean => file?.endsWith('.yaml') === true
