import { existsSync } from 'node:fs'
import path from 'node:path'
import { DatabaseInUse } from '@parley/kit/database/errors'
import { makeLog } from '@parley/kit/process/log'
import { readKeyRotation, readKeyStatus } from '@parley/wire/codecs/parley/keys'
import type { KeyRotation, KeyStatus } from '@parley/wire/model/keys'
import { CommandFailed } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'
import { clientSettings } from './environment.ts'
import { connect, type ServerOptions } from './server-connection.ts'

/** Access to the keys that encrypt a gateway's stored secrets. */
export interface StoredKeys extends AsyncDisposable {
  status(): Promise<KeyStatus>
  rotate(which: 'data' | 'master'): Promise<KeyRotation>
}

/**
 * Opens the store with the gateway's settings. If a running gateway has the store open, or a URL or token is given, the
 * gateway executes the request instead.
 * @throws CommandFailed if nothing is encrypted yet, ConfigError, DatabaseRefused, KeysRefused
 */
export async function openStoredKeys(io: Io, options: ServerOptions): Promise<StoredKeys> {
  if (options.url !== undefined || options.token !== undefined) return keysOfServer(io, options)
  try {
    return await keysInStore(io)
  } catch (error) {
    if (error instanceof DatabaseInUse) return keysOfServer(io, options)
    throw error
  }
}

async function keysOfServer(io: Io, options: ServerOptions): Promise<StoredKeys> {
  const server = await connect(io, options, 'operator')
  return {
    status: async () => readKeyStatus((await server.getJson('/keys')).body),
    rotate: async (which) => {
      const { body } = await server.send('POST', '/keys/rotate', { master: which === 'master' })
      return readKeyRotation(body)
    },
    [Symbol.asyncDispose]: async () => {},
  }
}

async function keysInStore(io: Io): Promise<StoredKeys> {
  const { gatewayConfig } = await import('@parley/gateway/config')
  const { config, secrets } = gatewayConfig({ ...io.env, DATA_DIR: clientSettings(io).dataDir })
  const { masterKey, storeUrl } = secrets
  const { loadMasterKeys } = await import('@parley/gateway/keys/master-key')
  const file = path.join(config.storeDir, 'gateway.db')
  const hasStore = storeUrl !== undefined || existsSync(file)
  // Opening the state would create what is missing.
  if (!hasStore || (await loadMasterKeys(config.dataDir, masterKey)) === undefined) {
    const missing = hasStore
      ? `${config.dataDir} has no master.key, and PARLEY_MASTER_KEY is not set. If the secrets are encrypted already, restore the key from its backup; else`
      : `There is no ${file}:`
    throw new CommandFailed(
      `${missing} the gateway creates it at its first start. Run the command in the folder of the server, with its settings.`,
    )
  }
  const { openGatewayState } = await import('@parley/gateway/gateway-state')
  const { keyStatus, rotateDataKey, rotateMasterKey } = await import('@parley/gateway/oauth/key-rotation')
  const log = makeLog({ level: 'silent', name: 'keys' })
  const state = await openGatewayState({ config, storeUrl, supervises: false, masterKey, log })
  return {
    status: () => keyStatus(state.keys),
    rotate: (which) => (which === 'master' ? rotateMasterKey(state.keys) : rotateDataKey(state.keys)),
    [Symbol.asyncDispose]: () => state[Symbol.asyncDispose](),
  }
}
