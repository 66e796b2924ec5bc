import { chmodSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { testAgent } from '@parley/agent/internal/testing'
import { TestChain } from '@parley/tools/testing/chain'
import { price } from '@parley/tools/testing/paid-agent'
import { afterAll, beforeAll, expect, test } from 'vitest'

let chain: TestChain
let folder: string
beforeAll(async () => {
  chain = await TestChain.start()
  folder = await mkdtemp(path.join(tmpdir(), 'parley-signer-'))
})
afterAll(async () => {
  await chain?.[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const start = (env: Record<string, string>, executionCost = price) =>
  testAgent({ executionCost, handle: () => 'done' }, { env }).catch((error: Error) => error.message)

test('a facilitator URL with a password causes a start-up error that does not contain the password', async () => {
  const message = await start({ PAYMENT_FACILITATOR_URL: 'https://user:geheim@facilitator.example' })
  expect(message).toBe('PAYMENT_FACILITATOR_URL must not hold a user name or a password.')
})

test.each<[string, number, (key: string) => string, RegExp]>([
  ['is readable by its group', 0o640, (key) => key, /chmod 600/],
  ['is readable by everyone', 0o604, (key) => key, /chmod 600/],
  ['contains no key', 0o600, () => 'geheim', /64 hex digits/],
  ['contains half a key', 0o600, (key) => key.slice(0, 34), /64 hex digits/],
])(
  'a signer key file that %s causes a start-up error that does not contain the key',
  async (_name, mode, text, message) => {
    const file = path.join(folder, `${mode}-${Math.random()}.key`)
    writeFileSync(file, text(chain.signerKey))
    chmodSync(file, mode)
    const env = { PAYMENT_RPC_URL: chain.url, PAYMENT_SIGNER_KEY_FILE: file }
    const refused = await start(env, chain.price('0.01', price.payTo) as typeof price)
    expect(refused).toMatch(message)
    expect(refused).not.toContain('geheim')
    expect(refused).not.toContain(chain.signerKey.slice(2, 34))
  },
)

test('a chain without a signer key and a missing key file both cause start-up errors', async () => {
  const onChain = chain.price('0.01', price.payTo) as typeof price
  expect(await start({ PAYMENT_RPC_URL: chain.url }, onChain)).toMatch(/requires PAYMENT_SIGNER_KEY_FILE/)
  const env = { PAYMENT_RPC_URL: chain.url, PAYMENT_SIGNER_KEY_FILE: path.join(folder, 'none') }
  expect(await start(env, onChain)).toMatch(/cannot be read/)
})
