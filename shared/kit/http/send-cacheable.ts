import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

interface CacheOptions {
  /** Whether callers with a token receive another response. Shared caches then store only anonymous ones. */
  perCaller?: boolean
  /** The request header, apart from the token, on which the response depends. */
  vary?: string | undefined
  lastModified?: Date
}

/** Sends JSON with an ETag, or 304 if the client has the current version. */
export function sendCacheable(
  request: FastifyRequest,
  reply: FastifyReply,
  json: string,
  { perCaller = false, vary, lastModified }: CacheOptions = {},
): FastifyReply {
  const scope = perCaller && request.headers.authorization !== undefined ? 'private' : 'public'
  const etag = `"${createHash('sha256').update(json).digest('base64url').slice(0, 22)}"`
  reply.headers({ etag, 'cache-control': `${scope}, max-age=60` })
  if (lastModified !== undefined) reply.header('last-modified', lastModified.toUTCString())
  const varies = [...(vary === undefined ? [] : [vary]), ...(perCaller ? ['Authorization'] : [])]
  // CORS may have set `Vary: Origin`.
  if (varies.length > 0) reply.header('vary', [reply.getHeader('vary') ?? [], varies].flat().join(', '))
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(json)
}

/** `If-None-Match` is `*` or a list of ETags, compared weakly (RFC 9110, section 13.1.2). */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const etags = ifNoneMatch?.split(',').map((value) => value.trim().replace(/^W\//, '')) ?? []
  return etags.includes(etag) || etags.includes('*')
}
