import type { Log } from './log.ts'

/** Something that was decided about somebody's wish. Values may come from outside; they are cut to their bounds. */
export interface Decision {
  /** The client of the token, `operator`, `supervisor`; undefined where nobody is known. */
  who?: string | undefined
  /** Where the request came from, as far as proxies are trusted. */
  address?: string | undefined
  /** What was wanted: a method (`message/send`), a route (`PUT /registry/agents/:id/heartbeat`), `oauth.approve`. */
  action: string
  /** On what: an agent, a client. */
  target?: string | undefined
  allowed: boolean
  /** Why not, or what was allowed: the name of an error, scopes. */
  reason?: string | undefined
  requestId?: string | undefined
}

const fieldMaxChars = 256

/**
 * The audit log: one line per decision, with `audit: true`, so that it can be told from all other lines. At `info`: who was
 * refused and why, what changed in the registry and in the OAuth server, what an operator did. At `debug`: work that was
 * taken (message/send, cancel, clear, feedback); each task says itself whose it is. Successful reads are not told.
 */
export class Audit {
  readonly #log: Log

  constructor(log: Log) {
    this.#log = log.child({ audit: true })
  }

  decided(decision: Decision): void {
    this.#log.info(fieldsOf(decision), 'decision')
  }

  /** Whether anybody reads what `worked` writes. */
  get tellsWork(): boolean {
    return this.#log.isLevelEnabled('debug')
  }

  /** Ordinary work that was taken. */
  worked(decision: Decision): void {
    if (this.tellsWork) this.#log.debug(fieldsOf(decision), 'decision')
  }
}

function fieldsOf({ allowed, requestId, ...texts }: Decision) {
  const fields: Record<string, string | boolean> = { allowed }
  for (const [name, value] of Object.entries(texts)) if (value !== undefined) fields[name] = bounded(value)
  if (requestId !== undefined) fields['request_id'] = bounded(requestId)
  return fields
}

/** One line of printable text of bounded length. */
function bounded(value: string): string {
  const text = value.slice(0, fieldMaxChars).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?')
  return value.length > fieldMaxChars ? `${text}…` : text
}
