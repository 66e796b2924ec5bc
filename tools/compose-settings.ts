/** Generates the blocks of settings in the compose files from the settings tables (`npm run env-example`). */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { agentSettings, commonSettings, gatewaySettings, type Setting } from '@parley/kit/process/settings'
import { type AgentSettings, agentSettingsFiles } from './agent-settings.ts'

const root = path.dirname(import.meta.dirname)
export const composeFiles = ['docker-compose.yml', 'docker-compose.full.yml'].map((name) =>
  path.join(root, name),
)

/** Settings that the image fixes: where the server listens, and where it stores its data in the container. */
export const imageSettings = [
  ...(/^ENV (.+)$/m.exec(readFileSync(path.join(root, 'Dockerfile'), 'utf8'))?.[1] ?? '').matchAll(/(\w+)=/g),
].map(([, name = '']) => name)

/** The tables that a block can contain. The comment at the start of a block names one or more of them. */
export const tables: Record<string, string[]> = {
  common: Object.keys(commonSettings),
  gateway: Object.keys(gatewaySettings),
  agent: Object.keys(agentSettings),
  'supervised agents': namesOf(agentSettings, ({ toAgents }) => toAgents === true),
  'agents/*/settings.json': agentSettingsFiles().flatMap(
    ({ settings }: { settings: AgentSettings }) => settings.env,
  ),
}

const block = /^( *)# settings: (.+?) \(npm run env-example\)\n[^]*?^\1# end of settings$/gm

/**
 * Returns a compose file with generated blocks. Omits settings that the image fixes or that the file sets outside the
 * blocks. @throws Error for an unknown table
 */
export function withSettings(compose: string): string {
  const fixed = [...compose.replaceAll(block, '').matchAll(/^ +([A-Z][A-Z0-9_]+):/gm)].map(([, name]) => name)
  return compose.replaceAll(block, (_text, indent: string, tableNames: string) => {
    const names = tableNames.split(', ').flatMap((table) => {
      const found = tables[table]
      if (found === undefined) throw new Error(`no table of settings "${table}"`)
      return found
    })
    const passed = names.filter((name) => !fixed.includes(name) && !imageSettings.includes(name))
    const lines = [
      `# settings: ${tableNames} (npm run env-example)`,
      ...passed.map((name) => `${name}: \${${name}:-}`),
    ]
    return [...lines, '# end of settings'].map((line) => indent + line).join('\n')
  })
}

function namesOf(table: Record<string, Setting>, isWanted: (setting: Setting) => boolean): string[] {
  return Object.entries(table).flatMap(([name, setting]) => (isWanted(setting) ? [name] : []))
}
