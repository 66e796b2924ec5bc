/** Writes `.env.example` and the settings in the compose files from the settings tables (`npm run env-example`). */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  agentSettings,
  cliSettings,
  commonSettings,
  gatewaySettings,
  type Setting,
} from '@parley/kit/process/settings'
import { type AgentSettings, agentSettingsFiles } from './agent-settings.ts'
import { composeFiles, withSettings } from './compose-settings.ts'

type Row = Pick<Setting, 'meaning'> & { secret?: boolean; example?: string }

const root = path.dirname(import.meta.dirname)
export const envExampleFile = path.join(root, '.env.example')

export function envExample(): string {
  const sections = [
    section('Gateway and agents', commonSettings),
    section('Only the gateway', gatewaySettings),
    section('Only agents that run without the supervisor of the gateway', agentSettings),
    section('The command line', cliSettings),
    ...agentSettingsFiles().map(agentSection),
  ]
  const head =
    '# Settings, with their defaults. Copy to .env; the environment wins over it. Empty = not set.\n'
  return [head, ...sections].join('\n')
}

function section(title: string, settings: Record<string, Row>): string {
  const lines = Object.entries(settings).map(([name, { meaning, secret, example = '' }]) => {
    return `# ${meaning}${secret === true ? ' (secret)' : ''}\n${name}=${example}\n`
  })
  return `## ${title}\n${lines.join('')}`
}

function agentSection({ agent, settings }: { agent: string; settings: AgentSettings }): string {
  const { env, required = [], secret = [], meaning = {} } = settings
  const rows = env.map((name) => {
    const condition = required.includes(name) ? '; without it the agent is not started' : ''
    return [name, { meaning: `${meaning[name] ?? ''}${condition}`, secret: secret.includes(name) }]
  })
  return section(`Agent ${agent}`, Object.fromEntries(rows))
}

if (import.meta.main) {
  writeFileSync(envExampleFile, envExample())
  for (const file of composeFiles) writeFileSync(file, withSettings(readFileSync(file, 'utf8')))
}
