import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { makeLog } from '@parley/kit/process/log'
import type { JsonObject } from '@parley/wire/model/task'
import { Agent } from 'undici'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ForeignCards } from './foreign-cards.ts'

const dispatcher = new Agent()
const renew = vi.fn<(id: string) => Promise<undefined>>(async () => undefined)
let cards: ForeignCards
let server: http.Server
let card: JsonObject | undefined
let withEtag: boolean
let answers: (number | undefined)[]

beforeEach(async () => {
  renew.mockReset()
  cards = new ForeignCards({ renew, log: makeLog({ level: 'silent', name: 'test' }) })
  card = { name: 'One' }
  withEtag = true
  answers = []
  server = http.createServer((request, response) => {
    const etag = `"${JSON.stringify(card ?? {}).length}"`
    const status =
      card === undefined || request.url !== '/.well-known/agent-card.json'
        ? 404
        : request.headers['if-none-match'] === etag
          ? 304
          : 200
    answers.push(status)
    response.writeHead(status, withEtag ? { etag } : {}).end(status === 200 ? JSON.stringify(card) : '')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  server.closeAllConnections()
  server.close()
})

const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const probe = (known: JsonObject = { name: 'One' }) =>
  cards.probe({ id: 'id', slug: 'one', url: url(), card: known }, new AbortController().signal, {
    dispatcher,
  })

test('an unchanged card is transferred once, and the entry is not renewed', async () => {
  expect([await probe(), await probe(), await probe()]).toEqual([true, true, true])
  expect(answers).toEqual([404, 200, 304, 304])
  expect(renew).not.toHaveBeenCalled()
})

test.each([true, false])('a changed card renews the entry once (ETag: %s)', async (isSent) => {
  withEtag = isSent
  await probe()
  card = { name: 'One', description: 'changed' }
  expect([await probe(), await probe()]).toEqual([true, true])
  expect(renew.mock.calls).toEqual([['id']])
})

test('another signature of the same card is not a change', async () => {
  await probe()
  card = { name: 'One', signatures: [{ protected: 'p', signature: 's' }] }
  expect(await probe()).toBe(true)
  expect(renew).not.toHaveBeenCalled()
})

test('a card that is not accepted is not read into the registry again for some time', async () => {
  renew.mockRejectedValue(new Error('refused'))
  card = { name: 'One', description: 'changed' }
  expect([await probe(), await probe()]).toEqual([true, true])
  expect(renew).toHaveBeenCalledTimes(1)
})

test('an agent without a card does not answer the probe', async () => {
  card = undefined
  expect(await probe()).toBe(false)
})
