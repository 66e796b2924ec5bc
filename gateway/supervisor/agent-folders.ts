import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { agentFileOf } from '@parley/kit/process/agent-file'
import { agentSettings, commonSettings, gatewaySettings } from '@parley/kit/process/settings'
import { z } from 'zod'

/** `settings.json` beside `agent.ts`: what the agent reads from the environment besides the settings of every agent. */
const settingName = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,63}$/)
  .refine((name) => !isReserved(name), 'belongs to the gateway or to Node')
const settingsFile = z.object({
  /** Names that are handed to the agent where they are set. */
  env: z.array(settingName).max(100).default([]),
  /** Of these, the ones without which the agent is not started. */
  required: z.array(settingName).max(100).default([]),
})

export interface AgentFolder {
  /** Name of the folder. */
  name: string
  folder: string
  settings: z.infer<typeof settingsFile>
  /** Why the folder cannot be run. */
  fault?: string
}

/** Every folder that holds an agent, ordered by name. An agents folder that is not there holds none. */
export async function findAgentFolders(agentsDir: string): Promise<AgentFolder[]> {
  const entries = await readdir(agentsDir, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const names = entries
    .filter((entry) => !entry.isFile() && !entry.name.startsWith('.'))
    .map(({ name }) => name)
  const found = await Promise.all(names.sort().map((name) => readFolder(path.resolve(agentsDir, name), name)))
  return found.filter((folder) => folder !== undefined)
}

async function readFolder(folder: string, name: string): Promise<AgentFolder | undefined> {
  if ((await agentFileOf(folder)) === undefined) return undefined
  const none = { env: [], required: [] }
  try {
    const text = await readFile(path.join(folder, 'settings.json'), 'utf8').catch(nullIfAbsent)
    const settings = text === null ? none : settingsFile.parse(JSON.parse(text))
    return { name, folder, settings }
  } catch (error) {
    return { name, folder, settings: none, fault: `settings.json ${faultOf(error)}` }
  }
}

function nullIfAbsent(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

function faultOf(error: unknown): string {
  if (!(error instanceof z.ZodError)) return 'is not JSON'
  return error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('; ')
}

/** An agent cannot ask for what is not its own: the settings of the house, the gateway's secrets, what steers Node. */
function isReserved(name: string): boolean {
  const ours = { ...commonSettings, ...agentSettings, ...gatewaySettings }
  return name in ours || /^(SERVICE_GATEWAY|PARLEY|OAUTH|NODE|LD|npm)_/i.test(name)
}
