/** The text of a body of at most so many bytes; a longer one is not read to its end. @throws Error */
export async function boundedText(body: AsyncIterable<Uint8Array>, maxBytes = 64 * 1024): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body) {
    size += chunk.byteLength
    if (size > maxBytes) throw new Error('answer is too large')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
