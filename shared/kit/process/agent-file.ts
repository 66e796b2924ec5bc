import { access } from 'node:fs/promises'
import path from 'node:path'

/** Names that the file of an agent may have, in this order. */
export const agentFiles = ['agent.ts', 'agent.js', 'agent.mjs'] as const

/** The file of the agent in `folder`; undefined when the folder holds none. */
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
