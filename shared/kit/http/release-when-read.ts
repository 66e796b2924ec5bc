import type { FastifyReply } from 'fastify'
import type { AnswerClaim } from '../process/answer-budget.ts'

/** A reader that takes nothing for so long is cut off. */
export const stallMs = 60_000

/** Releases the claim once the answer has been handed to the operating system, or its client has left. */
export function releaseWhenRead({ raw }: FastifyReply, claim: AnswerClaim): void {
  const release = () => claim[Symbol.dispose]()
  if (raw.destroyed || raw.closed) return release()
  raw.once('close', release)
  if (claim.bytes > 0) cutStalled(raw)
}

/** To be called once the whole answer is there: while it is being made, nothing moves on the connection. */
export function cutStalled(raw: FastifyReply['raw']): void {
  raw.setTimeout(stallMs, () => raw.destroy())
}
