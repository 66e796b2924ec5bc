/** The blocks of settings in the compose files, written from the tables of settings: `npm run env-example`. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { agentSettings, commonSettings, gatewaySettings, type Setting } from '@parley/kit/process/settings'
import { type AgentSettings, agentSettingsFiles } from './agent-settings.ts'

const root = path.dirname(import.meta.dirname)
export const composeFiles = ['docker-compose.yml', 'docker-compose.full.yml'].map((name) =>
  path.join(root, name),
)

/** Settings that the image fixes: where the server listens and keeps its data within the container. */
export const imageSettings = [
  ...(/^ENV (.+)$/m.exec(readFileSync(path.join(root, 'Dockerfile'), 'utf8'))?.[1] ?? '').matchAll(/(\w+)=/g),
].map(([, name = '']) => name)

/** What a block may hold; the comment at its beginning names one or more of these. */
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
 * The text of a compose file with its blocks as they should be. What the image fixes, or the file sets outside of the
 * blocks, is left out. @throws Error for a table that is not there
 */
export function withSettings(compose: string): string {
  const fixed = [...compose.replaceAll(block, '').matchAll(/^ +([A-Z][A-Z0-9_]+):/gm)].map(([, name]) => name)
  return compose.replaceAll(block, (_text, indent: string, wanted: string) => {
    const names = wanted.split(', ').flatMap((table) => {
      const found = tables[table]
      if (found === undefined) throw new Error(`there is no table of settings "${table}"`)
      return found
    })
    const passed = names.filter((name) => !fixed.includes(name) && !imageSettings.includes(name))
    const lines = [
      `# settings: ${wanted} (npm run env-example)`,
      ...passed.map((name) => `${name}: \${${name}:-}`),
    ]
    return [...lines, '# end of settings'].map((line) => indent + line).join('\n')
  })
}

function namesOf(table: Record<string, Setting>, isWanted: (setting: Setting) => boolean): string[] {
  return Object.entries(table).flatMap(([name, setting]) => (isWanted(setting) ? [name] : []))
}
