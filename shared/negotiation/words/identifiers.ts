/** UUIDs, and hexadecimal numbers such as hashes and addresses. */
const identifiers =
  /(?<![\p{L}\p{N}])(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|0x[0-9a-f]{8,}|(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{16,})(?![\p{L}\p{N}])/giu

/** The text without identifiers that a program made. Their letters are no words, although some of them spell one. */
export const withoutIdentifiers = (text: string): string => text.replace(identifiers, ' ')
