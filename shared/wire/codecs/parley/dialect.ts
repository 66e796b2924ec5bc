import type { Codec } from '../codec.ts'
import {
  isSuccess,
  readEnd,
  readList,
  readMessageIds,
  readReferences,
  readSendResult,
  readStreamEnd,
  readTask,
  readTaskOutput,
  readTaskReference,
  writeChain,
  writeMergedList,
} from './answers.ts'
import { cardOut, cardPaths } from './card.ts'
import { readError, writeError } from './errors.ts'
import { openStream, readFrame } from './frames.ts'
import { deprecations, methodOf, methods, paramsSchema, readParams, writeResult } from './methods.ts'
import { readCursor, readQuery, readRating, readTaskId, readTenant, writeCursor } from './params.ts'
import { writeParams } from './requests.ts'
import { partOut } from './task.ts'
import { webhookHeaders, writeWebhook } from './webhook.ts'

/** The native dialect (docs/spec). It writes snake_case and reads both spellings. Every method name is also a path. */
export const parley: Codec = {
  name: 'parley',
  title: 'Parley',
  version: undefined,
  headers: { request: [], answer: [] },
  methods,
  rpcPaths: [{ path: '/' }, ...[...methods.keys()].map((method) => ({ path: `/${method}`, method }))],
  cardPaths,
  accepts: ({ path }) => path === '/' || methods.has(path.slice(1)) || cardPaths.includes(path),
  negotiate: () => ({}),
  readExtensions: () => [],
  writeExtensions: () => ({}),
  rest: undefined,
  readParams,
  paramsSchema,
  readTaskId,
  readTenant,
  readQuery,
  readRating,
  deprecations,
  writeResult,
  writePart: partOut,
  openStream,
  writeError,
  writeCard: cardOut,
  writeWebhook,
  webhookHeaders,
  methodOf,
  writeParams,
  readTaskOutput,
  readTask,
  readSendResult,
  readFrame,
  readError,
  readTaskReference,
  readEnd,
  readStreamEnd,
  readMessageIds,
  readReferences,
  writeChain,
  isSuccess,
  readList,
  writeMergedList,
  readCursor,
  writeCursor,
}
