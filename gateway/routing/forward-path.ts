import { ParleyError } from '../../shared/jsonrpc/errors.ts'

/**
 * The path of the agent's own route, as raw as it came, from `/agents/{slug}/…`. What two servers might read differently
 * is refused: dot segments, encoded slashes and backslashes, control characters, escapes that are not UTF-8.
 * @throws ParleyError InvalidRequest
 */
export function forwardPath(rawUrl: string): string {
  const path = rawUrl.split('?', 1)[0] ?? ''
  if (/%2f|%5c|\\|%[01][\da-f]|%7f/i.test(path)) throw refused()
  for (const segment of path.split('/')) {
    const plain = decoded(segment)
    if (plain === '.' || plain === '..') throw refused()
  }
  const rest = path.slice('/agents/'.length)
  const slash = rest.indexOf('/')
  return slash === -1 ? '/' : rest.slice(slash)
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
    message: 'The path may not hold dot segments, encoded slashes or broken escapes',
    data: { reason: 'path' },
  })
}
