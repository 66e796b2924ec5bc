import { encodeAbiParameters, encodeEventTopics, erc20Abi, type Log, pad, toHex } from 'viem'
import { expect, test } from 'vitest'
import { paymentIn } from './chain-transfer.ts'

const [asset, payTo, payer, thief] = ['0xa1', '0xb2', '0xc3', '0xd4'].map((start) =>
  pad(start as `0x${string}`, { size: 20 }),
) as [`0x${string}`, `0x${string}`, `0x${string}`, `0x${string}`]
const nonce = (number: number) => toHex(number, { size: 32 })
const usedAbi = [
  {
    type: 'event',
    name: 'AuthorizationUsed',
    inputs: [
      { name: 'authorizer', type: 'address', indexed: true },
      { name: 'nonce', type: 'bytes32', indexed: true },
    ],
  },
] as const

const logOf = (topics: unknown, data: `0x${string}`, address = asset) =>
  ({ address, topics, data, blockNumber: 1n, logIndex: 0 }) as Log
const used = (number: number, authorizer = payer) =>
  logOf(encodeEventTopics({ abi: usedAbi, args: { authorizer, nonce: nonce(number) } }), '0x')
const moved = (to: `0x${string}`, value: bigint, { from = payer, of = asset } = {}) =>
  logOf(
    encodeEventTopics({ abi: erc20Abi, eventName: 'Transfer', args: { from, to } }),
    encodeAbiParameters([{ type: 'uint256' }], [value]),
    of,
  )

test.each<[string, Log[], 'paid' | 'not paid' | 'unclear']>([
  ['the price, to us', [used(1), moved(payTo, 10n)], 'paid'],
  [
    'the same in the other order, among unrelated transfers',
    [moved(thief, 10n, { from: thief }), moved(payTo, 10n), used(1)],
    'paid',
  ],
  ['the price to another receiver', [used(1), moved(thief, 10n)], 'not paid'],
  ['less than the price', [used(1), moved(payTo, 9n)], 'not paid'],
  ['more than the price', [used(1), moved(payTo, 11n)], 'not paid'],
  ['the price from another payer', [used(1), moved(payTo, 10n, { from: thief })], 'not paid'],
  ['another token', [used(1), moved(payTo, 10n, { of: thief })], 'not paid'],
  ['another nonce', [used(2), moved(payTo, 10n)], 'not paid'],
  ['the nonce of another payer', [used(1, thief), moved(payTo, 10n)], 'not paid'],
  // One transfer must not count for both payments.
  [
    'two authorizations of the payer, one transfer to us',
    [used(1), moved(thief, 1n), used(2), moved(payTo, 10n)],
    'unclear',
  ],
])('classifies a transaction with %s', (_name, logs, expected) => {
  expect(paymentIn(logs, { asset, payTo, atomic: '10' }, { from: payer, nonce: nonce(1) })).toBe(expected)
})
