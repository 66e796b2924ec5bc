import { type Authenticator, requireNoDelegate, requireScope } from '@parley/kit/auth/authenticate'
import { bodyOf } from '@parley/kit/http/request-body'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import { keyRotationIn, keyRotationOut, keyStatusOut } from '@parley/wire/codecs/parley/keys'
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

/** Adds the operator's `GET /keys` and `POST /keys/rotate`. Answers contain ids of keys and no keys. */
export function addKeyRoutes(app: FastifyInstance, { keys, authenticator }: KeyRoutes): void {
  const mutex = new KeyedMutex()
  const requireOperator = async (request: FastifyRequest) => {
    const caller = await authenticator.authenticate(request, bodyOf(request))
    request.callerId = caller.id
    requireNoDelegate(caller)
    requireScope(caller, 'agent:admin')
  }
  app.get('/keys', async (request) => {
    await requireOperator(request)
    return keyStatusOut(await keyStatus(keys))
  })
  app.post('/keys/rotate', { config: { audit: 'keys.rotate' } }, async (request) => {
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
