import type { AgentFolder } from './agent-folders.ts'

/** What every agent may know of the machine and of the house. Everything else of our environment stays ours. */
const passedOn = [
  'PATH',
  'HOME',
  'LANG',
  'LC_ALL',
  'TZ',
  'TMPDIR',
  'XDG_CACHE_HOME',
  'NODE_ENV',
  'NODE_EXTRA_CA_CERTS',
  'LOG_LEVEL',
  'TASK_QUEUE_MAX',
  'ARTIFACT_MAX_BYTES',
  'ANSWERS_PER_CALLER_MAX_BYTES',
  'ANSWERS_MAX_BYTES',
  'FILE_ALLOWED_HOSTS',
  'WEBHOOK_ALLOWED_HOSTS',
  'WEBHOOK_TOKEN',
  'WEBHOOK_URL',
  'RETENTION_DAYS',
  'RATE_LIMIT_PER_MINUTE',
  'CORS_ORIGINS',
  // Whether money is test money is for the house to say, and not for each agent's folder.
  'PAYMENT_FACILITATOR_URL',
  'PAYMENT_RPC_URL',
  'PAYMENT_SANDBOX',
  'PAYMENT_SIGNER_KEY_FILE',
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
