import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { resolveAgent } from '@parley/agent/internal/author/agent'
import { priceOf } from '@parley/agent/internal/author/price-of'
import { testAgent } from '@parley/agent/testing'
import { price } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'

const skill = { id: 'a', name: 'a', description: 'a' }
const agentWith = (executionCost: unknown) =>
  resolveAgent({
    name: 'x',
    description: 'x',
    skills: [skill],
    handle: () => '',
    executionCost: executionCost as never,
  })

test.each<[string, unknown, string]>([
  [
    'more digits than the asset has',
    { ...price, amount: '0.0000001' },
    'has 7 digits after the point, and the asset has 6',
  ],
  [
    'more than uint256',
    { ...price, amount: '9'.repeat(60), decimals: 18 },
    'exceeds the largest amount of a token',
  ],
  ['a leading zero', { ...price, amount: '00.01' }, 'decimal text'],
  ['a negative amount', { ...price, amount: '-0.01' }, 'decimal text'],
  ['a number instead of a text', { ...price, amount: 0.01 }, 'executionCost'],
  ['an exponent', { ...price, amount: '1e-2' }, 'decimal text'],
  ['a bad asset', { ...price, asset: '0x12' }, 'must be an address'],
  ['a bad payee', { ...price, payTo: 'me' }, 'must be an address'],
  ['the zero address as payee', { ...price, payTo: `0x${'0'.repeat(40)}` }, 'zero address'],
  ['an unknown network', { ...price, network: 'base' }, 'CAIP-2'],
  ['a chain that is not EVM', { ...price, network: 'solana:mainnet' }, 'CAIP-2'],
  ['a misspelled field', { ...price, payto: price.payTo }, 'payto'],
  [
    'transfers of an asset with few decimals',
    { ...price, amount: '1', decimals: 2, transfers: true },
    'transfers requires at least 6 decimals and an amount of more than 99900',
  ],
  [
    'transfers of a small amount',
    { ...price, amount: '0.0999', transfers: true },
    'an amount of more than 99900 atomic units',
  ],
  ['transfers that are no boolean', { ...price, transfers: 'yes' }, 'transfers must be true or false'],
  ['one asset twice', [price, { ...price, amount: '2' }], 'each asset of a network once'],
])('%s is reported as a start-up error that names the fault', (_what, given, text) => {
  expect(() => agentWith(given)).toThrow(text)
  expect(() => agentWith(given)).toThrow('executionCost')
})

test('a resolved price contains the decimals and EIP-712 domain of USDC and the amount in atomic units', () => {
  const { extra: _extra, ...rest } = price
  expect(agentWith(rest).executionCost).toEqual([
    { ...rest, decimals: 6, extra: { name: 'USD Coin', version: '2' }, atomic: '10000' },
  ])
})

test('a skill has its own price; a message without a skill pays the highest price', () => {
  const agent = resolveAgent({
    name: 'x',
    description: 'x',
    executionCost: price,
    skills: [
      skill,
      { ...skill, id: 'dear', executionCost: { ...price, amount: '5' } },
      { ...skill, id: 'free', executionCost: { ...price, amount: '0' } },
    ],
    handle: () => '',
  })
  const amountOf = (metadata: Record<string, unknown>) => priceOf(agent, { metadata })[0]?.amount
  expect(amountOf({ skill_id: 'a' })).toBe('0.01')
  expect(amountOf({ skillId: 'dear' })).toBe('5')
  expect(amountOf({ skill_id: 'free' })).toBe('0')
  expect(amountOf({})).toBe('5')
  expect(amountOf({ skill_id: 'none' })).toBeUndefined()
})

const paid = { handle: () => '', executionCost: price }

test('in production a paid agent with no facilitator refuses to start, unless PAYMENT_SANDBOX=yes', async () => {
  await expect(testAgent(paid, { env: { NODE_ENV: 'production' } })).rejects.toThrow(
    'PAYMENT_FACILITATOR_URL',
  )
  await using agent = await testAgent(paid, { env: { NODE_ENV: 'production', PAYMENT_SANDBOX: 'yes' } })
  expect(agent.app.services.payments?.sandbox).toBe(true)
})

test('in the sandbox, a price on a main chain becomes a price on a test chain', async () => {
  await using agent = await testAgent({ ...paid, executionCost: { ...price, network: 'eip155:8453' } })
  const card = (await (await fetch(`${agent.url}/.well-known/agent.json`)).json()) as {
    executionCost: object
  }
  expect(card.executionCost).toMatchObject({ network: 'eip155:31337', sandbox: true })
})

test('payments on a chain require a key that pays for gas and a node that responds', async () => {
  const env = { PAYMENT_RPC_URL: 'http://127.0.0.1:9' }
  await expect(testAgent(paid, { env })).rejects.toThrow('set PAYMENT_SIGNER_KEY_FILE')
  const folder = await mkdtemp(`${tmpdir()}/parley-key-`)
  try {
    const PAYMENT_SIGNER_KEY_FILE = `${folder}/key`
    await writeFile(PAYMENT_SIGNER_KEY_FILE, `0x${'1'.repeat(64)}`, { mode: 0o600 })
    await expect(testAgent(paid, { env: { ...env, PAYMENT_SIGNER_KEY_FILE } })).rejects.toThrow(
      'cannot be reached',
    )
  } finally {
    await rm(folder, { recursive: true })
  }
})
