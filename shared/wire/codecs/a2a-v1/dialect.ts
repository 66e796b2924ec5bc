import { ParleyError } from '../../errors.ts'
import { commonCardPath } from '../a2a-card.ts'
import {
  extensionsHeader,
  extensionsWriter,
  isVersion1,
  readExtensions,
  readVersion,
  requestHeaders,
  versionHeader,
} from '../a2a-headers.ts'
import type { Codec, WireRequest } from '../codec.ts'
import * as answers from './answers.ts'
import { cardOut, cardPaths } from './card.ts'
import { readError, writeError } from './errors.ts'
import { openStream } from './frames.ts'
import { methodOf, methods, paramsSchema, readParams, writeResult } from './methods.ts'
import { basePath, dialectName } from './name.ts'
import { readCursor, readQuery, readTaskId, readTenant, writeCursor } from './params.ts'
import { writeParams } from './requests.ts'
import { rest } from './rest.ts'
import { partOut } from './task.ts'
import { webhookHeaders, writeWebhook } from './webhook.ts'

const version = '1.0'
const ownPaths = new Set([basePath, `${basePath}/`, basePath + commonCardPath])

/** A2A 1.0 (spec/a2a.md#10-methods). Its method names are also accepted at the path of the native dialect. */
export const a2aV1: Codec = {
  name: dialectName,
  title: 'A2A 1.0',
  version,
  headers: { request: requestHeaders, answer: [versionHeader, extensionsHeader] },
  methods,
  rpcPaths: [{ path: basePath }, { path: `${basePath}/` }, { path: '/' }],
  cardPaths,
  accepts,
  negotiate,
  readExtensions,
  writeExtensions: extensionsWriter(extensionsHeader),
  rest: { ...rest, covers },
  readParams,
  paramsSchema,
  readTaskId,
  readTenant,
  readQuery,
  readRating: () => undefined,
  deprecations: () => [],
  writeResult,
  writePart: partOut,
  openStream,
  writeError,
  writeCard: (card) => cardOut(card),
  writeWebhook,
  webhookHeaders,
  methodOf,
  writeParams,
  ...answers,
  readError,
  readCursor,
  writeCursor,
}

/**
 * At the root, the method name selects this dialect, or the version, so that unknown methods are refused in the client's
 * dialect. A method that only another dialect has selects that one.
 */
function accepts(request: WireRequest): boolean {
  const { path, method } = request
  if (path === '/' && method !== undefined && methods.has(method)) return true
  if (path === '/' || path === commonCardPath) return namesVersion1(request)
  return ownPaths.has(path)
}

/**
 * Accepts every 1.x. A request without a version counts as one of the version that its path or method implies.
 * @throws ParleyError VersionNotSupported
 */
function negotiate(request: WireRequest): Record<string, string> {
  const given = readVersion(request)
  if (given === undefined || isVersion1(given)) return { [versionHeader.toLowerCase()]: version }
  throw new ParleyError('VersionNotSupported', {
    message: 'This A2A-Version is not supported at this address',
    data: { supported: [version] },
  })
}

/** The REST paths at the root are next to those of other dialects. */
const restPath = /^\/(message:|tasks(\/|$)|extendedAgentCard$)/

function covers(request: WireRequest): boolean {
  const { path } = request
  if (ownPaths.has(path)) return false
  return path.startsWith(`${basePath}/`) || (restPath.test(path) && namesVersion1(request))
}

function namesVersion1(request: WireRequest): boolean {
  const given = readVersion(request)
  return given !== undefined && isVersion1(given)
}
