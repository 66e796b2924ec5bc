import { ParleyError } from '@parley/wire/errors'
import type { FastifyRequest } from 'fastify'

const noBytes = Buffer.alloc(0)

/** The raw body of a request; empty if it has none. */
export function bodyOf({ body }: FastifyRequest): Buffer {
  return Buffer.isBuffer(body) ? body : noBytes
}

/** @throws ParleyError InvalidRequest with status 415 for a content type that is present and not JSON */
export function requireJson(request: FastifyRequest): void {
  const type = request.headers['content-type']
  if (type === undefined || /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) return
  throw new ParleyError('InvalidRequest', { status: 415, message: 'Content type must be application/json' })
}
