import { RecentMap } from '@parley/kit/did/recent-map'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { FastifyRequest } from 'fastify'

/** A console repeats its lists, so a look at the same list is recorded once in this time. */
const listEveryMs = 60_000
const listsMax = 1000

/** Writes looks of operators at the texts of others to the audit log (spec/operator.md#views). */
export class TextLooks {
  readonly #audit: Audit
  readonly #recordedUntil = new RecentMap<string, number>(listsMax)

  constructor(log: Log) {
    this.#audit = new Audit(log)
  }

  /** @param target the task or decision with texts in the answer */
  record(request: FastifyRequest, target: string): void {
    this.#audit.record({
      who: request.callerId,
      address: request.ip,
      action: 'operator.read_texts',
      target,
      allowed: true,
      requestId: request.id,
    })
  }

  /** @param list the name of a list that contains the beginnings of texts */
  recordList(request: FastifyRequest, list: string): void {
    const key = JSON.stringify([request.callerId, request.ip, list])
    if ((this.#recordedUntil.get(key) ?? 0) > Date.now()) return
    this.#recordedUntil.set(key, Date.now() + listEveryMs)
    this.record(request, list)
  }
}
