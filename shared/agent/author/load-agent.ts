import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { agentFileOf, agentFiles, isManifest } from '@parley/kit/process/agent-file'
import { ConfigError } from '@parley/kit/process/settings'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import { type Agent, resolveAgent } from './agent.ts'
import type { AgentDefinition } from './define-agent.ts'
import { readSkillFiles } from './skill-file.ts'

/** @throws Error when the folder contains no agent or the agent's definition is invalid */
export async function loadAgent(folder: string): Promise<Agent> {
  const file = await agentFileOf(folder)
  if (file === undefined) throw new Error(`${folder} contains no ${agentFiles.join(', ')}.`)
  if (isManifest(file))
    throw new ConfigError([`${file} is a manifest. Run it with npx parley agent or npx parley up.`])
  const module = await importAgent(file)
  if (module.default === undefined) throw new Error(`${file} must export its agent as default.`)
  return resolveAgent(module.default, await readSkillFiles(path.join(folder, 'skills')))
}

async function importAgent(file: string): Promise<{ default?: AgentDefinition }> {
  const { href } = pathToFileURL(file)
  try {
    const module: { default?: AgentDefinition } = await import(href)
    return module
  } catch (error) {
    const manifest = findPackageJSON(href)
    if (!(error instanceof SyntaxError) || manifest === undefined || file.endsWith('.mjs')) throw error
    if (jsonObjectOf(await readFile(manifest, 'utf8'))?.['type'] !== 'commonjs') throw error
    throw new ConfigError([
      `${file} cannot be loaded as CommonJS (${error.message}). Set "type": "module" in ${manifest}, or in a package.json of the agents folder.`,
    ])
  }
}
