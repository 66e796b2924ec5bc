import { z } from 'zod'
import type { Setting } from './settings.ts'

const optional = z.string().trim().optional()

/** Settings of the gateway for its keys: those that encrypt its records and those of its DID. */
export const keySettings = {
  PARLEY_MASTER_KEY: {
    schema: optional,
    example: '',
    meaning:
      'key that encrypts stored OAuth clients, sessions and keys: 32 bytes in base64 (openssl rand -base64 32), the same for all gateways on one database; empty: the file DATA_DIR/master.key, created at the first start',
    secret: true,
  },
  PARLEY_MASTER_KEY_PREVIOUS: {
    schema: optional,
    example: '',
    meaning:
      'earlier value of PARLEY_MASTER_KEY, while it is being replaced (npx parley keys rotate --master)',
    secret: true,
  },
  SERVICE_GATEWAY_DID_SEED: {
    schema: optional,
    example: '',
    meaning:
      'seed of the gateway’s key, 32 bytes in base64; together with SERVICE_GATEWAY_AUTHOR and SERVICE_GATEWAY_NAME the identity of the gateway (npx parley did new --gateway)',
    secret: true,
  },
  SERVICE_GATEWAY_AUTHOR: { schema: optional, example: '', meaning: 'operator in the DID of the gateway' },
  SERVICE_GATEWAY_NAME: { schema: optional, example: '', meaning: 'name in the DID of the gateway' },
  SERVICE_GATEWAY_DID_KEYS: {
    schema: optional,
    example: '',
    meaning:
      'public keys of the gateway after a rotation, oldest first; its DID remains that of the first key (npx parley did rotate --gateway)',
  },
} as const satisfies Record<string, Setting>
