import type { Log } from './log.ts'

/** An access decision. External values are truncated and cleaned before they are logged. */
export interface Decision {
  /** The client of the token, `operator` or `supervisor`; undefined for unauthenticated requests. */
  who?: string | undefined
  /** Address of the client, as reported by trusted proxies. */
  address?: string | undefined
  /** A method (`message/send`), a route (`PUT /registry/agents/:id/heartbeat`) or a name such as `oauth.approve`. */
  action: string
  /** The object of the action, for example an agent or a client. */
  target?: string | undefined
  allowed: boolean
  /** The name of the error if refused; the scopes if granted. */
  reason?: string | undefined
  requestId?: string | undefined
}

const fieldMaxChars = 256

/**
 * The audit log has one line per decision, marked with `audit: true`. Level `info`: refusals with their reason,
 * changes in the registry and in the OAuth server, and operators' actions. Level `debug`: accepted work
 * (message/send, cancel, clear, feedback), which the tasks also record. Successful reads are not logged.
 */
export class Audit {
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log.child({ audit: true })
  }

  record(decision: Decision): void {
    this.#log.info(fieldsOf(decision), 'decision')
  }

  /** Whether `logWork` writes anything at the current log level. */
  get logsWork(): boolean {
    return this.#log.isLevelEnabled('debug')
  }

  /** Logs accepted work. */
  logWork(decision: Decision): void {
    if (this.logsWork) this.#log.debug(fieldsOf(decision), 'decision')
  }
}

function fieldsOf({ allowed, requestId, ...texts }: Decision) {
  const fields: Record<string, string | boolean> = { allowed }
  for (const [name, value] of Object.entries(texts)) if (value !== undefined) fields[name] = bounded(value)
  if (requestId !== undefined) fields['request_id'] = bounded(requestId)
  return fields
}

/** Truncates the text and replaces control characters and line breaks. */
function bounded(value: string): string {
  const text = value.slice(0, fieldMaxChars).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
  return value.length > fieldMaxChars ? `${text}…` : text
}
