/** Writes `.env.example` from the tables of settings: `npm run env-example`. */
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import {
  agentSettings,
  cliSettings,
  commonSettings,
  gatewaySettings,
  type Setting,
} from '../shared/process/settings.ts'

type Row = Pick<Setting, 'meaning'> & { secret?: boolean; example?: string }

/** An agent's `settings.json`: the names that it is handed, and what they are for. */
interface AgentSettings {
  env: string[]
  required?: string[]
  secret?: string[]
  meaning?: Record<string, string>
}

const root = path.dirname(import.meta.dirname)
export const envExampleFile = path.join(root, '.env.example')

export function envExample(): string {
  const sections = [
    section('Gateway and agents', commonSettings),
    section('The gateway alone', gatewaySettings),
    section('An agent alone, where it runs without the gateway’s supervisor', agentSettings),
    section('The command line', cliSettings),
    ...globSync('agents/*/settings.json', { cwd: root }).sort().map(agentSection),
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

function agentSection(file: string): string {
  const text = readFileSync(path.join(root, file), 'utf8')
  const { env, required = [], secret = [], meaning = {} } = JSON.parse(text) as AgentSettings
  const rows = env.map((name) => {
    const condition = required.includes(name) ? '; without it the agent is not started' : ''
    return [name, { meaning: `${meaning[name] ?? ''}${condition}`, secret: secret.includes(name) }]
  })
  return section(`Agent ${path.basename(path.dirname(file))}`, Object.fromEntries(rows))
}

if (import.meta.main) writeFileSync(envExampleFile, envExample())
