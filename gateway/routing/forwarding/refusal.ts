import { defaultDialect, dialectOf } from '@parley/wire/codecs/dialects'
import { type AnsweredError, readAnsweredError } from '@parley/wire/codecs/error-answer'
import { errorTable, ParleyError } from '@parley/wire/errors'
import { jsonOf } from '@parley/wire/model/json-text'
import { operations } from '@parley/wire/model/operation'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { CallAddress } from './call-reader.ts'
import type { ResponseHead } from './exchange.ts'

/** Reasons for a 503 that Parley's servers send before they store the message. */
const unprocessed = new Set<unknown>(['draining', 'queue_full', 'oauth', 'gateway_keys', 'limits', 'loop'])
/** The code in JSON-RPC and without its envelope (AIP-193). */
const unavailable = new Set<number>([errorTable.Unavailable.code, 503])
/** A larger response is never a rejection. */
export const refusalMaxBytes = 64 * 1024

/** Whether this is a 503 with a reason that proves nothing was stored. Any other 503 may have been sent later. */
export function isRejectedUnprocessed(status: number, bytes: Buffer): boolean {
  return unprocessed.has(reasonIn(status, bytes))
}

/** Whether the process rejects new work because it is about to stop. */
export function isStopping(status: number, bytes: Buffer): boolean {
  return reasonIn(status, bytes) === 'draining'
}

/** The status of a response in Parley's own dialect. Other dialects answer most errors with 200. */
export function outcomeStatus({ status }: Pick<ResponseHead, 'status'>, bytes: Buffer): number {
  return status === 200 ? (errorIn(bytes)?.status ?? status) : status
}

/** Returns the error of a response in any dialect; undefined if it is not an error. */
export function errorIn(bytes: Buffer): AnsweredError | undefined {
  if (bytes.byteLength > refusalMaxBytes || !bytes.includes('"error"')) return undefined
  return readAnsweredError(jsonOf(bytes.toString('utf8')))
}

/** The statuses with which servers answer at a path that they do not have. */
const unknownPath = new Set([404, 405, 501])

/** Whether the response means that an external agent, such as one of an earlier version, lacks the caller's dialect. */
export function lacksDialect(
  entry: AgentEntry,
  { path, rest }: Pick<CallAddress, 'path'> & { rest?: CallAddress['rest'] | undefined },
  { status }: Pick<ResponseHead, 'status'>,
): boolean {
  if (!isExternal(entry) || !unknownPath.has(status)) return false
  // Other dialects answer errors of JSON-RPC with 200. Without an envelope, 404 may concern the task in the path.
  if (rest === undefined) return dialectOf({ path, headers: {} }) !== defaultDialect
  return operations[rest.route.operation].target === 'message'
}

export function dialectUnsupported(slug: string): ParleyError {
  return new ParleyError('UnsupportedOperation', {
    message: `Agent ${slug} does not support this version of A2A: its card lists the versions and addresses that it supports`,
    data: { reason: 'dialect', agent: slug },
  })
}

function reasonIn(status: number, bytes: Buffer): unknown {
  const error = status === 503 ? errorIn(bytes) : undefined
  return error !== undefined && unavailable.has(error.code) ? error.reason : undefined
}
