import { ParleyError } from '../../errors.ts'
import { commonCardPath } from '../a2a-card.ts'
import {
  earlierExtensionsHeader,
  extensionsWriter,
  isVersion1,
  readExtensions,
  readVersion,
  requestHeaders,
} from '../a2a-headers.ts'
import type { Codec, WireRequest } from '../codec.ts'
import * as answers from './answers.ts'
import { cardOut, cardPaths } from './card.ts'
import { readError, writeError } from './errors.ts'
import { openStream } from './frames.ts'
import { methodOf, methods, paramsSchema, readParams, writeResult } from './methods.ts'
import { basePath, dialectName } from './name.ts'
import { readQuery, readTaskId, readTenant } from './params.ts'
import { writeParams } from './requests.ts'
import { rest } from './rest.ts'
import { partOut } from './task.ts'
import { webhookHeaders, writeWebhook } from './webhook.ts'

const rpcPaths = [{ path: basePath }, { path: `${basePath}/` }]
const supported = ['0.3']

/**
 * A2A 0.3 over JSON-RPC (spec/a2a.md#03-methods). It writes camelCase and reads both spellings. The servers of the SDKs also
 * answer requests without an ID, and their clients do not read errors of streams outside of a stream.
 */
export const a2aV03: Codec = {
  name: dialectName,
  title: 'A2A 0.3',
  version: undefined,
  headers: { request: requestHeaders, answer: [earlierExtensionsHeader] },
  methods,
  rpcPaths,
  cardPaths,
  accepts,
  negotiate,
  readExtensions,
  writeExtensions: extensionsWriter(earlierExtensionsHeader),
  lenientRequests: true,
  framesErrors: true,
  rest,
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
  writeCard: cardOut,
  writeWebhook,
  webhookHeaders,
  methodOf,
  writeParams,
  ...answers,
  readError,
  readCursor: () => undefined,
  writeCursor: (params) => params,
}

/** At the root, clients select this version with the header, because the method names are also those of other dialects. */
function accepts(request: WireRequest): boolean {
  const { path, method } = request
  const version = readVersion(request) ?? ''
  if (path === '/') return isSupported(version) && (method === undefined || methods.has(method))
  if (path === commonCardPath) return !isVersion1(version)
  return cardPaths.includes(path) || rpcPaths.some((rpc) => rpc.path === path)
}

/** @throws ParleyError VersionNotSupported */
function negotiate(request: WireRequest): Record<string, string> {
  const version = readVersion(request)
  if (version === undefined || isSupported(version)) return {}
  throw new ParleyError('VersionNotSupported', {
    message: 'This address speaks A2A 0.3. The agent card lists the addresses of other versions',
    data: { supported },
  })
}

/** Whether the version is 0.3 or a patch of it. */
function isSupported(version: string): boolean {
  return /^0\.3(\.\d{1,4})?$/.test(version)
}
