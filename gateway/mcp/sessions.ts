import { randomUUID } from 'node:crypto'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { type ElicitationSupport, elicitationSupport } from './pauses.ts'

/**
 * The sessions of clients before 2026-07-28, which state their capabilities only once. The ID itself says what the
 * client can do, so any gateway of a deployment serves the session and none has to remember it. Clients that cannot show
 * questions need no session.
 */
export class Sessions {
  /** Sessions that were ended here, oldest first. */
  readonly #ended = new Set<string>()

  /** Returns the ID of a new session for a request `initialize`; undefined if the client needs none. */
  idFor(body: unknown): string | undefined {
    const params = isObject(body) && body['method'] === 'initialize' ? body['params'] : undefined
    const { form, url } = elicitationSupport(isObject(params) ? params['capabilities'] : undefined)
    return form || url ? `${form ? 'f' : ''}${url ? 'u' : ''}.${randomUUID()}` : undefined
  }

  supportIn(sessionId: unknown): ElicitationSupport {
    const flags = typeof sessionId === 'string' ? (idPattern.exec(sessionId)?.[1] ?? '') : ''
    return { form: flags.includes('f'), url: flags.includes('u') }
  }

  /** Whether the session exists: it has the form of one and was not ended. */
  isOpen(sessionId: string): boolean {
    return idPattern.test(sessionId) && !this.#ended.has(sessionId)
  }

  end(sessionId: string): void {
    const [oldest] = this.#ended
    if (this.#ended.size >= endedMax && oldest !== undefined) this.#ended.delete(oldest)
    this.#ended.add(sessionId)
  }
}

const endedMax = 10_000
const idPattern = /^([fu]{1,2})\.[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/
