/** Thrown if a response body exceeds its size limit. */
export class BodyTooLarge extends Error {
  override readonly name = 'BodyTooLarge'

  constructor(maxBytes: number) {
    super(`The response is larger than ${maxBytes} bytes`)
  }
}

/**
 * Reads a body of at most `maxBytes` bytes (default 64 KiB) as UTF-8; an absent body is empty.
 * @throws BodyTooLarge without reading the rest of the body
 */
export async function boundedText(
  body: AsyncIterable<Uint8Array> | null | undefined,
  maxBytes = 64 * 1024,
): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of body ?? []) {
    size += chunk.byteLength
    if (size > maxBytes) throw new BodyTooLarge(maxBytes)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
