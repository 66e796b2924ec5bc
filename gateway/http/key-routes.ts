import { type Authenticator, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { bodyOf } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import {
  keyRotationAnswer,
  keyRotationIn,
  keyRotationOut,
  keyStatusAnswer,
  keyStatusOut,
} from '@parley/wire/codecs/parley/keys'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { KeysRefused } from '../keys/master-key.ts'
import type { GatewayKeys } from '../keys/open-keys.ts'
import { keyStatus, rotateDataKey, rotateMasterKey } from '../oauth/key-rotation.ts'

export interface KeyRoutes {
  keys: GatewayKeys
  authenticator: Authenticator
}

const status: OperationDescription = {
  summary: 'The keys that encrypt stored secrets',
  description: 'Answers contain IDs of keys and no keys.',
  tag: 'operations',
  access: 'agent:admin',
  responses: { 200: { description: 'The keys', json: keyStatusAnswer } },
}

const rotation: OperationDescription = {
  summary: 'Replace the data key or the master key',
  tag: 'operations',
  access: 'agent:admin',
  body: { json: keyRotationIn, required: false },
  responses: { 200: { description: 'The result', json: keyRotationAnswer } },
  errors: ['Conflict'],
}

/** Adds the operator's `GET /keys` and `POST /keys/rotate`. Answers contain ids of keys and no keys. */
export function addKeyRoutes(app: FastifyInstance, { keys, authenticator }: KeyRoutes): void {
  const mutex = new KeyedMutex()
  const requireOperator = async (request: FastifyRequest) => {
    const caller = await authenticator.authenticate(request, bodyOf(request))
    request.callerId = caller.id
    requireNoDelegate(caller)
    requireScope(caller, 'agent:admin')
  }
  app.get('/keys', { config: { api: status } }, async (request) => {
    await requireOperator(request)
    return keyStatusOut(await keyStatus(keys))
  })
  app.post('/keys/rotate', { config: { audit: 'keys.rotate', api: rotation } }, async (request) => {
    await requireOperator(request)
    const body = bodyOf(request)
    const { master } = parseParams(keyRotationIn, body.byteLength === 0 ? {} : parseJson(body))
    request.auditTarget = master ? 'the master key' : 'the data key'
    const rotate = master ? rotateMasterKey : rotateDataKey
    return keyRotationOut(await mutex.run(['keys'], () => rotate(keys)).catch(asConflict))
  })
}

function asConflict(error: unknown): never {
  if (!(error instanceof KeysRefused)) throw error
  throw new ParleyError('Conflict', { message: error.message, data: { reason: 'keys' } })
}
