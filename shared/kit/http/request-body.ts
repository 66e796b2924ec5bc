import { ParleyError } from '@parley/wire/errors'
import type { FastifyRequest } from 'fastify'

const noBytes = Buffer.alloc(0)

/** Returns the raw body of a request, which is empty if there is no body. */
export function bodyOf({ body }: FastifyRequest): Buffer {
  return Buffer.isBuffer(body) ? body : noBytes
}

/** Whether the content type is JSON, such as `application/json` and `application/a2a+json`. */
export function isJson(type: string): boolean {
  return /^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)
}

/** @throws ParleyError InvalidRequest with status 415 if a content type is given and is not JSON */
export function requireJson(request: FastifyRequest): void {
  const type = request.headers['content-type']
  if (type === undefined || isJson(type)) return
  throw new ParleyError('InvalidRequest', { status: 415, message: 'Content type must be application/json' })
}
