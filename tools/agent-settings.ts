import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** An agent's `settings.json`: the names that it is handed, and what they are for. */
export interface AgentSettings {
  env: string[]
  required?: string[]
  secret?: string[]
  meaning?: Record<string, string>
}

const root = path.dirname(import.meta.dirname)

/** Of the agents of `agents/` that have one, by name. */
export function agentSettingsFiles(): { agent: string; settings: AgentSettings }[] {
  return globSync('agents/*/settings.json', { cwd: root })
    .sort()
    .map((file) => ({
      agent: path.basename(path.dirname(file)),
      settings: JSON.parse(readFileSync(path.join(root, file), 'utf8')) as AgentSettings,
    }))
}
