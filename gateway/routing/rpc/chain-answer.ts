import type { ChainLink } from '@parley/wire/codecs/codec'
import { idempotencyKeyOut } from '@parley/wire/codecs/parley/negotiation'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { FastifyReply } from 'fastify'
import type { Incoming, PartAnswer } from '../placement/sending.ts'
import { answer } from './response-forwarder.ts'

/** The tasks of the chain, as JSON in ASCII characters. Responses without a task, such as errors, have only this header. */
const chainHeader = 'x-parley-chain'

/** Answers the caller of a chain with the response to one of its parts. */
export function respond(incoming: Incoming, answered: PartAnswer, links: readonly ChainLink[]): FastifyReply {
  const { entry, head, headers } = answered
  const bytes = withMetadata(incoming, answered, links)
  const length = { 'content-length': String(bytes.byteLength) }
  const changed = { head: { ...head, headers: { ...head.headers, ...length } }, bytes }
  return answer(incoming, entry, changed, { ...headers, [chainHeader]: headerOf(links) })
}

/** Errors keep their form, which the dialect or a payment scheme determines. */
function withMetadata(
  { codec, rest }: Incoming,
  { head, bytes }: PartAnswer,
  links: readonly ChainLink[],
): Buffer {
  const json = jsonOf(bytes.toString('utf8'))
  if (head.status !== 200 || !isObject(json)) return bytes
  if (rest !== undefined) return Buffer.from(JSON.stringify(codec.writeChain(json, links)))
  if (!isObject(json['result'])) return bytes
  return Buffer.from(JSON.stringify({ ...json, result: codec.writeChain(json['result'], links) }))
}

const headerOf = (links: readonly ChainLink[]) =>
  JSON.stringify(links).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Returns the error of a part with the tasks of the chain. It names the key of the request, with which the caller may send all parts again. */
export function withChain(thrown: unknown, links: readonly ChainLink[], key: string): ParleyError {
  const { error, message, status, data, headers } = ParleyError.from(thrown)
  const isRepeatable = headers['idempotency-key'] !== undefined
  return new ParleyError(error, {
    message,
    status,
    data: { ...data, ...(isRepeatable && idempotencyKeyOut(key)) },
    headers: {
      ...headers,
      ...(isRepeatable && { 'idempotency-key': key }),
      [chainHeader]: headerOf(links),
    },
    cause: thrown,
  })
}
