import { agentSettings, commonSettings, type Setting } from '@parley/kit/process/settings'
import type { AgentFolder } from './agent-folders.ts'

/** What every agent may know of the machine. */
const ofTheMachine = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'XDG_CACHE_HOME',
  'NODE_EXTRA_CA_CERTS',
]

/** And the settings that are the same for all. Everything else of our environment stays ours. */
const passedOn = [
  ...ofTheMachine,
  ...Object.entries<Setting>({ ...commonSettings, ...agentSettings })
    .filter(([, { toAgents }]) => toAgents === true)
    .map(([name]) => name),
]

/**
 * The environment of an agent's process, made from nothing: what is on the list, what its `settings.json` names, and
 * what is its own.
 */
export function agentEnvironment(
  ours: NodeJS.ProcessEnv,
  settings: AgentFolder['settings'],
  own: Record<string, string>,
): NodeJS.ProcessEnv {
  const names = [...passedOn, ...settings.env, ...settings.required]
  const passed = names.flatMap((name) => (ours[name] === undefined ? [] : [[name, ours[name]]]))
  return { ...(Object.fromEntries(passed) as NodeJS.ProcessEnv), ...own }
}
