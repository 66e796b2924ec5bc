import { expect, test } from 'vitest'
import { agentEnvironment } from './environment.ts'

const none = { env: [], required: [], secret: [], meaning: {} }

test('payment settings are passed to every agent and other secrets to none', () => {
  const payments = {
    PAYMENT_FACILITATOR_URL: 'https://facilitator.example',
    PAYMENT_RPC_URL: 'https://node.example',
    PAYMENT_SANDBOX: 'no',
    PAYMENT_SIGNER_KEY_FILE: '/keys/gas',
  }
  const ours = { ...payments, SERVICE_GATEWAY_DID_SEED: 'secret', OAUTH_CLIENT_SECRET: 'secret' }
  expect(agentEnvironment(ours, none as never, { PORT: '1' })).toEqual({ ...payments, PORT: '1' })
})
