import { createHash } from 'node:crypto'
import { partsOf } from '@parley/wire/codecs/dialects'
import { jsonType } from '@parley/wire/codecs/error-answer'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RecentMap } from '../did/recent-map.ts'

interface CacheOptions {
  /** Whether callers with a token receive another response. Shared caches then store only anonymous ones. */
  perCaller?: boolean
  /** The request header, apart from the token, on which the response depends. */
  vary?: string | undefined
  /** Adds `Last-Modified`. */
  modified?: ModificationTimes
  /** The media type. */
  type?: string
  /** A header of the response that depends on the request, so that a browser with another value gets the whole response. */
  header?: string
}

/** The age of a new content, which leaves a time for each of the contents that a path has within a minute. */
const firstAgeMs = 60_000

/**
 * Remembers since when this process has sent a content. Times of one path differ by at least a second, the unit of HTTP dates,
 * so that equal times mean equal content.
 */
export class ModificationTimes {
  readonly #byContent = new RecentMap<string, number>(1000)
  readonly #latestByPath = new RecentMap<string, number>(1000)

  /** Returns milliseconds since 1970, which may be in the future if the content of the path changes more often. */
  of(path: string, etag: string): number {
    const content = `${etag} ${path}`
    const since = this.#byContent.get(content) ?? this.#next(path)
    this.#byContent.set(content, since)
    return since
  }

  #next(path: string): number {
    const first = Math.floor(Date.now() / 1000) * 1000 - firstAgeMs
    const next = Math.max(first, (this.#latestByPath.get(path) ?? 0) + 1000)
    this.#latestByPath.set(path, next)
    return next
  }
}

/**
 * Sends JSON with an ETag, or 304 if the client has the current version. The time in `If-Modified-Since` must be the one in
 * `Last-Modified`: several processes or an earlier content may have any other.
 */
export function sendCacheable(
  request: FastifyRequest,
  reply: FastifyReply,
  json: string,
  { perCaller = false, vary, modified, type = jsonType, header = '' }: CacheOptions = {},
): FastifyReply {
  const scope = perCaller && request.headers.authorization !== undefined ? 'private' : 'public'
  const etag = `"${createHash('sha256').update(header).update(json).digest('base64url').slice(0, 22)}"`
  reply.headers({ etag, 'cache-control': `${scope}, max-age=60` })
  const since = modified?.of(partsOf(request.url).path, etag) ?? Number.POSITIVE_INFINITY
  const isDated = since <= Date.now()
  if (isDated) reply.header('last-modified', new Date(since).toUTCString())
  const varies = [...(vary === undefined ? [] : [vary]), ...(perCaller ? ['Authorization'] : [])]
  // CORS may have set `Vary: Origin`.
  if (varies.length > 0) reply.header('vary', [reply.getHeader('vary') ?? [], varies].flat().join(', '))
  const { 'if-none-match': ifNoneMatch, 'if-modified-since': ifModifiedSince = '' } = request.headers
  const isCurrent =
    ifNoneMatch === undefined
      ? isDated && Date.parse(ifModifiedSince) === since
      : matchesEtag(ifNoneMatch, etag)
  if (isCurrent) return reply.code(304).send()
  return reply.type(type).send(json)
}

/** `If-None-Match` is `*` or a list of ETags, compared weakly (RFC 9110, section 13.1.2). */
function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  const etags = ifNoneMatch.split(',').map((value) => value.trim().replace(/^W\//, ''))
  return etags.includes(etag) || etags.includes('*')
}
