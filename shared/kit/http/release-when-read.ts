import type { FastifyReply } from 'fastify'
import type { AnswerClaim } from '../process/answer-budget.ts'

/** A connection is destroyed if its client reads nothing for this long. */
export const stallMs = 60_000

/**
 * Releases the claim once the operating system has accepted the response or the client has disconnected. For a response
 * of one piece, call it after sending.
 */
export function releaseWhenRead({ raw }: FastifyReply, claim: AnswerClaim): void {
  const release = () => claim[Symbol.dispose]()
  // Most responses fit into the socket buffer and need no timeout.
  if (raw.destroyed || raw.closed || isAccepted(raw)) return release()
  raw.on('close', release)
  if (claim.bytes > 0) cutStalled(raw)
}

/** Whether the response has ended and the operating system has accepted all of it, even if `finish` is not emitted yet. */
function isAccepted({
  writableEnded,
  writableLength,
  writableFinished,
  socket,
}: FastifyReply['raw']): boolean {
  return writableFinished || (writableEnded && socket !== null && writableLength === 0)
}

/** Starts the stall timeout. Call it when the whole response is ready; until then, the connection is idle. */
export function cutStalled(raw: FastifyReply['raw']): void {
  raw.setTimeout(stallMs, () => raw.destroy())
}
