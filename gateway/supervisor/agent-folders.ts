import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { agentFileOf, isManifest } from '@parley/kit/process/agent-file'
import { egressDestination } from '@parley/kit/process/isolation-settings'
import {
  agentSettings,
  ConfigError,
  cliSettings,
  commonSettings,
  gatewaySettings,
} from '@parley/kit/process/settings'
import { z } from 'zod'

/** Name of a variable that an agent reads besides the common settings, listed in its `settings.json`. */
const settingName = z
  .string()
  .regex(/^[A-Z][A-Z0-9_]{0,63}$/)
  .refine((name) => !isReserved(name), 'is reserved for the gateway or Node')
const settingsFile = z.strictObject({
  /** Variables passed to the agent if they are set. */
  env: z.array(settingName).max(100).default([]),
  /** Variables without which the agent is not started. They are also passed to the agent. */
  required: z.array(settingName).max(100).default([]),
  /**
   * Rights beyond those of every isolated agent: to start programs and threads, to load native addons, and to sign
   * payments with PAYMENT_SIGNER_KEY_FILE.
   */
  allow: z.array(z.enum(['processes', 'threads', 'addons', 'signer'])).default([]),
  /** Further files and folders that the agent may read: absolute, or relative to the folder of the agent. */
  read: z.array(z.string().min(1).max(4096)).max(100).default([]),
  /** The only destinations of the agent's connections, as `host:port`. Undefined if they are not limited. */
  egress: z.array(egressDestination).max(100).optional(),
  /** The variables that contain secrets. The gateway does not read it. */
  secret: z.array(z.string()).optional(),
  /** Descriptions of the variables, by name. The gateway does not read it. */
  meaning: z.record(z.string(), z.string()).optional(),
})

export interface AgentFolder {
  /** The name of the folder and of the agent. */
  name: string
  folder: string
  settings: z.infer<typeof settingsFile>
  /** The reason why the agent cannot be started. */
  fault?: string
}

/** Lists every folder that contains an agent, sorted by name. A missing agents folder is treated as empty. */
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
  const file = await agentFileOf(folder)
  if (file === undefined) return undefined
  if (isManifest(file)) return readManifestFolder(folder, name)
  const none = settingsFile.parse({})
  try {
    const text = await readFile(path.join(folder, 'settings.json'), 'utf8').catch(nullIfMissing)
    const settings = text === null ? none : settingsFile.parse(JSON.parse(text))
    return { name, folder, settings }
  } catch (error) {
    return { name, folder, settings: none, fault: `settings.json ${faultOf(error)}` }
  }
}

/** A manifest contains the settings, and names the variables that it uses. */
async function readManifestFolder(folder: string, name: string): Promise<AgentFolder> {
  const none = settingsFile.parse({})
  try {
    const { readManifest, variablesIn } = await import('@parley/relay/manifest/manifest')
    const manifest = await readManifest(folder)
    if (manifest === undefined) return { name, folder, settings: none, fault: 'agent.yaml cannot be read' }
    const { required = [], ...given } = settingsFile.partial().parse(manifest.settings)
    const settings = settingsFile.parse({
      ...given,
      required: [...new Set([...required, ...variablesIn(manifest)])],
    })
    if ('command' in manifest.handler.mcp && !settings.allow.includes('processes')) {
      const fault =
        'agent.yaml starts a program (handler.mcp.command), which requires the right to do so: add "settings: {allow: [processes]}"'
      return { name, folder, settings, fault }
    }
    return { name, folder, settings }
  } catch (error) {
    if (error instanceof ConfigError) return { name, folder, settings: none, fault: error.message }
    return { name, folder, settings: none, fault: `agent.yaml: settings ${faultOf(error)}` }
  }
}

function nullIfMissing(error: NodeJS.ErrnoException): null {
  if (error.code === 'ENOENT') return null
  throw error
}

function faultOf(error: unknown): string {
  if (!(error instanceof z.ZodError)) return 'is not JSON'
  const faults = error.issues.flatMap((issue) =>
    issue.code === 'unrecognized_keys'
      ? issue.keys.map(unknownField)
      : `${issue.path.join('.')} ${issue.message}`,
  )
  return faults.join('; ')
}

function unknownField(name: string): string {
  const known = Object.keys(settingsFile.shape)
  const near = known
    .map((one) => ({ one, distance: editDistance(one, name.slice(0, 64).toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)[0]
  const hint =
    near !== undefined && near.distance <= 2
      ? `did you mean ${JSON.stringify(near.one)}?`
      : `the fields are ${known.join(', ')}`
  return `has the unknown field ${JSON.stringify(name.slice(0, 64))}: ${hint}`
}

/** Returns the Levenshtein distance: the number of characters to insert, delete or replace. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let index = 0; index < a.length; index += 1) {
    const next = [index + 1]
    for (let at = 0; at < b.length; at += 1)
      next.push(
        Math.min((row[at] ?? 0) + Number(a[index] !== b[at]), (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1),
      )
    row = next
  }
  return row.at(-1) ?? 0
}

/** Agents must not receive the settings and secrets of the gateway, or variables that change how Node.js runs. */
function isReserved(name: string): boolean {
  const ours = { ...commonSettings, ...agentSettings, ...gatewaySettings, ...cliSettings }
  return name in ours || /^(SERVICE_GATEWAY|PARLEY|OAUTH|NODE|LD|npm)_|_OAUTH_CLIENT_(ID|SECRET)$/i.test(name)
}
