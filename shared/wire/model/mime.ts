/** Words that clients of the reference implementation send instead of MIME types. */
const words = new Map([
  ['*', '*/*'],
  ['text', 'text/*'],
  ['json', 'application/json'],
  ['text/event-stream', '*/*'],
])

/** Converts a MIME type to lower case without parameters. */
export function normalMode(mode: string): string {
  const bare = mode.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  return words.get(bare) ?? bare
}

/** Either side may have wildcards; parameters are ignored. */
export function modesMatch(a: string, b: string): boolean {
  const [typeA, subA] = normalMode(a).split('/')
  const [typeB, subB] = normalMode(b).split('/')
  const typeFits = typeA === '*' || typeB === '*' || typeA === typeB
  return typeFits && (subA === '*' || subB === '*' || subA === subB)
}
