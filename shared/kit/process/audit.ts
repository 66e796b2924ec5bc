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

/** Receives each entry of level `info`, truncated and cleaned. Must not block or throw. */
export type AuditSink = (decision: Decision) => void

const sink = Symbol('audit sink')

/** Passes the entries of all audit logs that write to `log` or its child loggers to `receive`, too. */
export function receiveAudit(log: Log, receive: AuditSink): void {
  Object.assign(log, { [sink]: receive })
}

/**
 * The audit log has one line per decision, marked with `audit: true`. Level `info`: refusals with their reason,
 * changes in the registry and in the OAuth server, and operators' actions. Level `debug`: accepted work
 * (message/send, cancel, clear, feedback), which the tasks also record. Successful reads are not logged.
 */
export class Audit {
  readonly #log: Log & { [sink]?: AuditSink }

  constructor(log: Log) {
    this.#log = log.child({ audit: true })
  }

  record(decision: Decision): void {
    const cleaned = cleanedDecision(decision)
    this.#log.info(fieldsOf(cleaned), 'decision')
    this.#log[sink]?.(cleaned)
  }

  /** Whether `logWork` writes anything at the current log level. */
  get logsWork(): boolean {
    return this.#log.isLevelEnabled('debug')
  }

  /** Logs accepted work. */
  logWork(decision: Decision): void {
    if (this.logsWork) this.#log.debug(fieldsOf(cleanedDecision(decision)), 'decision')
  }
}

function cleanedDecision({ allowed, action, ...texts }: Decision): Decision {
  const cleaned: Decision = { allowed, action: bounded(action) }
  for (const name of ['who', 'address', 'target', 'reason', 'requestId'] as const) {
    const value = texts[name]
    if (value !== undefined) cleaned[name] = bounded(value)
  }
  return cleaned
}

function fieldsOf({ requestId, ...fields }: Decision) {
  return { ...fields, ...(requestId !== undefined && { request_id: requestId }) }
}

/** Truncates the text and replaces control characters and line breaks. */
function bounded(value: string): string {
  const text = value.slice(0, fieldMaxChars).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
  return value.length > fieldMaxChars ? `${text}…` : text
}
