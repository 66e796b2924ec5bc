import Fastify from 'fastify'
import { expect, test } from 'vitest'
import { ModificationTimes, sendCacheable } from './send-cacheable.ts'

/** A server at which each path has a content that the test sets. */
function served() {
  const content = new Map<string, string>()
  const modified = new ModificationTimes()
  const app = Fastify()
  app.get('/*', (request, reply) =>
    sendCacheable(request, reply, JSON.stringify(content.get(request.url)), { modified }),
  )
  const get = async (url: string, headers: Record<string, string> = {}) => {
    const { statusCode, headers: answered } = await app.inject({ url, headers })
    return { status: statusCode, etag: String(answered.etag), modified: answered['last-modified'] }
  }
  return { content, get }
}

test('If-Modified-Since receives 304 for the date in Last-Modified, and the content for every other date', async () => {
  const { content, get } = served()
  content.set('/card', 'one')
  const { modified = '' } = await get('/card')
  const next = new Date(Date.parse(modified) + 1000).toUTCString()
  const statuses = []
  for (const date of [modified, next, 'Sat, 01 Jan 2000 00:00:00 GMT', 'yesterday', ''])
    statuses.push((await get('/card', { 'if-modified-since': date })).status)
  expect(statuses).toEqual([304, 200, 200, 200, 200])
})

test('If-None-Match takes precedence over If-Modified-Since', async () => {
  const { content, get } = served()
  content.set('/card', 'one')
  const { modified = '', etag } = await get('/card')
  const both = (given: string) => get('/card', { 'if-modified-since': modified, 'if-none-match': given })
  expect((await both('"other"')).status).toBe(200)
  expect((await both(etag)).status).toBe(304)
})

test('a content that changes within a second is never answered with 304 for the date of another one', async () => {
  const { content, get } = served()
  const dates = new Set<string>()
  const values = ['one', 'two', 'one', 'two', ...Array.from({ length: 70 }, (_, index) => `${index}`)]
  for (const value of values) {
    content.set('/card', value)
    for (const date of [...dates].slice(-3)) {
      const { modified } = await get('/card')
      const { status } = await get('/card', { 'if-modified-since': date })
      expect(status).toBe(modified === date ? 304 : 200)
    }
    const { modified } = await get('/card')
    // A date in the future is not sent.
    expect(Date.parse(modified ?? '1970-01-01')).toBeLessThanOrEqual(Date.now())
    if (modified !== undefined) dates.add(modified)
  }
  expect(dates.size).toBeGreaterThan(50)
  expect(dates.size).toBeLessThan(values.length)
})
