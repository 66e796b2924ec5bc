import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Sends JSON with an ETag, or 304 if the client has the current version. */
export function sendCacheable(request: FastifyRequest, reply: FastifyReply, json: string): FastifyReply {
  const etag = `"${createHash('sha256').update(json).digest('base64url').slice(0, 22)}"`
  reply.headers({ etag, 'cache-control': 'public, max-age=60' })
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.type('application/json; charset=utf-8').send(json)
}

/** `If-None-Match` is `*` or a list of ETags, compared weakly (RFC 9110, section 13.1.2). */
function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  const etags = ifNoneMatch?.split(',').map((value) => value.trim().replace(/^W\//, '')) ?? []
  return etags.includes(etag) || etags.includes('*')
}
