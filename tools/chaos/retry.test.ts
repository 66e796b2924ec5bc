import { AgentClient, ConnectionError, RpcError } from '@parley/client/internal/client'
import { expect, test } from 'vitest'
import { type ClientRun, untilDone } from './retry.ts'

const way = new AgentClient({ url: 'http://127.0.0.1:9' })

function run(role: 'plain' | 'signs' = 'plain', wrongBy = 0): ClientRun {
  const client = {
    name: 'test',
    role,
    clock: { wrongBy },
    at: [{ named: way, routed: way }],
    token: () => Promise.resolve(''),
    purse: undefined,
    refusedByClock: 0,
    acceptedDespiteClock: 0,
    paidWithoutTask: 0,
  }
  const tally = { acknowledged: 0, outages: new Map(), unclear: new Map() }
  return { client, random: () => 0, tally, recovery: { since: undefined } }
}

const error = (code: number, status: number, data = {}, headers = {}) =>
  new RpcError({ code, status, message: 'no', data, headers: new Headers(headers) })
const later = { 'retry-after': '2' }

/** Runs a request whose first attempt ends with this response and whose second attempt succeeds. */
async function after(expected: ClientRun, thrown: unknown) {
  let attempts = 0
  await untilDone(expected, () => ((attempts += 1) === 1 ? Promise.reject(thrown) : Promise.resolve(1)))
  const { outages, unclear } = expected.tally
  return { outages: [...outages.keys()], unclear: [...unclear.keys()] }
}

test.each([
  ['a connection that broke', new ConnectionError('http://a', new Error('gone')), 'gone'],
  ['-32042 with a retry time', error(-32042, 503, { reason: 'storage' }, later), 'storage'],
  [
    'a payment in progress',
    error(-32043, 409, { reason: 'payment_in_progress' }, later),
    'payment_in_progress',
  ],
  ['an incomplete search', error(-32001, 404, {}, { 'x-parley-incomplete': 'worker' }), 'no'],
])('retries after %s, which is a clear error', async (_, thrown, why) => {
  expect(await after(run(), thrown)).toEqual({ outages: [why], unclear: [] })
})

test.each([
  ['-32603', error(-32603, 500)],
  ['-32042 without a retry time', error(-32042, 503)],
  ['not found', error(-32001, 404)],
  ['no envelope', error(0, 502)],
  ['a refused signature with a correct clock', error(-32012, 403, { reason: 'timestamp_out_of_window' })],
])('does not count %s as a clear error', async (_, thrown) => {
  const { outages, unclear } = await after(run('signs'), thrown)
  expect([outages.length, unclear.length]).toEqual([0, 1])
})

test('counts requests that are refused because of a wrong clock or accepted in spite of it', async () => {
  const expected = run('signs', -400)
  const refusal = error(-32012, 403, { reason: 'timestamp_out_of_window' })
  expect(await after(expected, refusal)).toEqual({ outages: [], unclear: [] })
  expect(expected.client).toMatchObject({ refusedByClock: 1, acceptedDespiteClock: 1 })
})
