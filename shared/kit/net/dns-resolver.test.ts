import dgram from 'node:dgram'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { dnsResolver } from './dns-resolver.ts'

/** The name server's records by name and family; `silence` means that it never responds. */
type Zone = Record<string, { 4?: string[] | 'silence'; 6?: string[] | 'silence' }>

let server: dgram.Socket
let queries: string[] = []
let zone: Zone = {}
beforeEach(async () => {
  queries = []
  server = dgram.createSocket('udp4')
  server.on('message', (question, from) => {
    const answer = answerTo(question)
    if (answer !== undefined) server.send(answer, from.port, from.address)
  })
  await new Promise<void>((bound) => server.bind(0, '127.0.0.1', bound))
})
afterEach(() => new Promise<void>((closed) => void server.close(closed)))

test('both families are queried, and IPv4 comes first', async () => {
  zone = { 'hook.example': { 4: ['192.0.2.1', '192.0.2.2'], 6: ['2001:db8::1'] } }
  expect(await resolver()('hook.example')).toEqual(['192.0.2.1', '192.0.2.2', '2001:db8::1'])
})

test.each([
  ['IPv4 alone', { 4: ['192.0.2.1'] }, ['192.0.2.1']],
  ['IPv6 alone', { 6: ['2001:db8::1'] }, ['2001:db8::1']],
  ['IPv4, and no response for IPv6', { 4: ['192.0.2.1'], 6: 'silence' }, ['192.0.2.1']],
] as const)('a name with %s', async (_title, records, addresses) => {
  zone = { 'hook.example': records as unknown as Zone[string] }
  expect(await resolver()('hook.example')).toEqual(addresses)
})

test('an unknown name is not found even if it is in the hosts file', async () => {
  await expect(resolver()('nowhere.example')).rejects.toBeInstanceOf(AggregateError)
  await expect(resolver()('localhost.')).rejects.toBeInstanceOf(AggregateError)
})

test('many names with an unresponsive server do not delay other names', async () => {
  zone = { 'quick.example': { 4: ['192.0.2.1'] } }
  for (let n = 0; n < 100; n++) zone[`slow-${n}.example`] = { 4: 'silence', 6: 'silence' }
  const resolve = resolver({ timeoutMs: 300 })
  let ended = 0
  const slow = Array.from({ length: 100 }, (_, n) =>
    resolve(`slow-${n}.example`).finally(() => (ended += 1)),
  ).map((one) => one.catch(() => 'none'))
  expect(await resolve('quick.example')).toEqual(['192.0.2.1'])
  expect(ended).toBe(0)
  expect(new Set(await Promise.all(slow))).toEqual(new Set(['none']))
})

test('only concurrent lookups of a name share a query, and the number of lookups is bounded', async () => {
  zone = { 'hook.example': { 4: ['192.0.2.1'] }, 'slow.example': { 4: 'silence', 6: 'silence' } }
  const resolve = resolver({ lookupsMax: 1, timeoutMs: 200 })
  await Promise.all([resolve('hook.example'), resolve('hook.example')])
  expect(queries.filter((name) => name === 'hook.example').length).toBe(2)
  await resolve('hook.example')
  expect(queries.filter((name) => name === 'hook.example').length).toBe(4)
  const slow = resolve('slow.example').catch(() => 'none')
  await expect(resolve('other.example')).rejects.toMatchObject({ reason: 'busy' })
  expect(await slow).toBe('none')
})

function resolver(options: Parameters<typeof dnsResolver>[0] = {}) {
  const { port } = server.address() as AddressInfo
  return dnsResolver({ servers: [`127.0.0.1:${port}`], ...options })
}

/** Encodes a DNS response (RFC 1035) to one question. */
function answerTo(question: Buffer): Buffer | undefined {
  const labels: string[] = []
  let at = 12
  for (let length = question[at] ?? 0; length > 0; length = question[at] ?? 0) {
    labels.push(question.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  const name = labels.join('.').toLowerCase()
  const family = question.readUInt16BE(at + 1) === 28 ? 6 : 4
  queries.push(name)
  const addresses = zone[name] === undefined ? undefined : (zone[name][family] ?? [])
  if (addresses === 'silence') return undefined
  const records = (addresses ?? []).map((address) => {
    const data = family === 4 ? Buffer.from(address.split('.').map(Number)) : ipv6(address)
    const head = Buffer.from([0xc0, 12, 0, family === 4 ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, data.length])
    return Buffer.concat([head, data])
  })
  const head = Buffer.alloc(12)
  question.copy(head, 0, 0, 2)
  // Response flags with recursion available; code 3 means that the name does not exist.
  head.writeUInt16BE(0x8180 | (addresses === undefined ? 3 : 0), 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(records.length, 6)
  return Buffer.concat([head, question.subarray(12, at + 5), ...records])
}

function ipv6(address: string): Buffer {
  const [first = '', last = ''] = address.split('::')
  const groups = (text: string) => text.split(':').map((group) => Number.parseInt(group, 16))
  const whole = [
    ...groups(first),
    ...Array<number>(8 - groups(first).length - groups(last).length).fill(0),
    ...groups(last),
  ]
  return Buffer.from(whole.flatMap((group) => [group >> 8, group & 0xff]))
}
