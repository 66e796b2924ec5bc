import { agentSettings, commonSettings, type Setting } from '@parley/kit/process/settings'
import type { AgentFolder } from './agent-folders.ts'

/** The machine's variables that every agent receives. */
const machineVariables = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'XDG_CACHE_HOME',
  'NODE_EXTRA_CA_CERTS',
]

/** Agents receive these variables and the common settings marked `toAgents`. All others stay in the gateway. */
const forwardedVariables = [
  ...machineVariables,
  ...Object.entries<Setting>({ ...commonSettings, ...agentSettings })
    .filter(([, { toAgents }]) => toAgents === true)
    .map(([name]) => name),
]

/**
 * Builds the environment of an agent's process from an allow list, the variables that its `settings.json` names and the
 * given settings.
 */
export function agentEnvironment(
  ours: NodeJS.ProcessEnv,
  settings: AgentFolder['settings'],
  own: Record<string, string>,
): NodeJS.ProcessEnv {
  const names = [...forwardedVariables, ...settings.env, ...settings.required]
  const forwarded: NodeJS.ProcessEnv = {}
  for (const name of names) if (ours[name] !== undefined) forwarded[name] = ours[name]
  return { ...forwarded, ...own }
}
