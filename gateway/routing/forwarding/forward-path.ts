import { ParleyError } from '@parley/wire/errors'

/**
 * The unmodified path after `/agents/{slug}`. Rejects paths that two servers may parse differently: dot segments,
 * encoded slashes and backslashes, control characters, fragments, escapes that are not UTF-8.
 * @throws ParleyError InvalidRequest
 */
export function forwardPath(rawUrl: string): string {
  const query = rawUrl.indexOf('?')
  const path = safePath(query === -1 ? rawUrl : rawUrl.slice(0, query))
  return pathAtAgent(path)
}

/** The path at the agent that a path names; the path itself if it names none. It is not checked. */
export function pathAtAgent(path: string): string {
  if (!path.startsWith('/agents/')) return path
  const slash = path.indexOf('/', '/agents/'.length)
  return slash === -1 ? '/' : path.slice(slash)
}

/** Returns the path itself if every server parses it alike. @throws ParleyError InvalidRequest */
export function safePath(path: string): string {
  if (maybeOdd.test(path)) check(path)
  return path
}

/** Matches every path that must be rejected, and few valid paths. */
const maybeOdd = /%|\\|#|\/\./

function check(path: string): void {
  if (/%2f|%5c|\\|#|%[01][\da-f]|%7f/i.test(path)) throw refused()
  for (const segment of path.split('/')) {
    const plain = decoded(segment)
    if (plain === '.' || plain === '..') throw refused()
  }
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw refused()
  }
}

function refused(): ParleyError {
  return new ParleyError('InvalidRequest', {
    message: 'The path must not contain dot segments, encoded slashes or invalid escapes',
    data: { reason: 'path' },
  })
}
