/** Later than this after its time a timer was held up by this process itself. */
const heldUpMs = 100

/**
 * Calls `expired` once the time is over. Where this process itself was held up, the answer may be here unread, or the
 * question not even sent: then the time begins anew, once. Returns what calls it off.
 */
export function answerLimit(limitMs: number, expired: () => void): () => void {
  const due = performance.now() + limitMs
  // What is in the socket is read before the limit counts.
  const over = () => void setImmediate(expired)
  let timer = setTimeout(() => {
    if (performance.now() - due > heldUpMs) timer = setTimeout(over, limitMs)
    else over()
  }, limitMs)
  return () => clearTimeout(timer)
}
