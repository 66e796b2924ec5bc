/** UUIDs, and hexadecimal numbers such as hashes and addresses. */
const identifiers =
  /(?<![\p{L}\p{N}])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]{8,}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,})(?![\p{L}\p{N}])/giu

/**
 * The text without identifiers that a program made: their letters are no words, although some of them spell one. A text of nothing
 * else is returned unchanged.
 */
export function withoutIdentifiers(text: string): string {
  const rest = text.replace(identifiers, ' ')
  return /[\p{L}\p{N}]/u.test(rest) ? rest : text
}
