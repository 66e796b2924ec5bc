import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** An agent's `settings.json`, which lists and describes the environment variables that the agent gets. */
export interface AgentSettings {
  env: string[]
  required?: string[]
  secret?: string[]
  meaning?: Record<string, string>
}

const root = path.dirname(import.meta.dirname)

/** The settings files of `agents/`, by the name of the agent. */
export function agentSettingsFiles(): { agent: string; settings: AgentSettings }[] {
  return globSync('agents/*/settings.json', { cwd: root })
    .sort()
    .map((file) => ({
      agent: path.basename(path.dirname(file)),
      settings: JSON.parse(readFileSync(path.join(root, file), 'utf8')) as AgentSettings,
    }))
    .filter(({ settings }) => settings.env.length > 0)
}
