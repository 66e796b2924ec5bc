/** Reads an event stream that answers a POST request (docs/spec/streaming.md#frames). */

/**
 * Yields the data of each frame.
 * @param {ReadableStream<BufferSource>} body
 * @returns {AsyncGenerator<string>}
 */
export async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      rest += value
      const blocks = rest.split(/\r?\n\r?\n/)
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const data = dataOf(block)
        if (data !== '') yield data
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined)
  }
}

/**
 * Comments, such as those that keep the connection open, have no data.
 * @param {string} block
 */
const dataOf = (block) =>
  block
    .split(/\r?\n/)
    .filter((line) => line.startsWith('data:'))
    .map((line) => line.slice(5).replace(/^ /, ''))
    .join('\n')
