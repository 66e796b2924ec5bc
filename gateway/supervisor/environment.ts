import { machineVariables } from '@parley/kit/process/machine-variables'
import { agentSettings, commonSettings, type Setting } from '@parley/kit/process/settings'
import type { AgentFolder } from './agent-folders.ts'

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
