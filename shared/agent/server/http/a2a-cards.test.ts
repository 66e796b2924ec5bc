import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({ handle: () => 'done' }, { store: 'memory' })
})
afterAll(() => agent[Symbol.asyncDispose]())

const shared = '/.well-known/agent-card.json'

test.each<[string, string, boolean, boolean]>([
  [shared, '', true, true],
  [shared, '0.3', true, true],
  [shared, '1.0', false, true],
  [shared, '1.1', false, true],
  [`${shared}?A2A-Version=1.0`, '', false, true],
  [`/a2a/v1${shared}`, '', false, true],
  [`/a2a/v1${shared}`, '0.3', false, true],
  [`/a2a/v0.3${shared}`, '', true, false],
])('GET %s with version "%s" needs no token and may be cached', async (path, version, is03, is1) => {
  const headersSent: Record<string, string> = version === '' ? {} : { 'a2a-version': version }
  const answer = await raw(agent, { method: 'GET', path, headers: headersSent })
  const card = answer.json
  expect(answer.status).toBe(200)
  expect([card.protocolVersion === '0.3.0', Array.isArray(card.supportedInterfaces)]).toEqual([is03, is1])
  expect(card.url).toBe(is03 ? `${agent.url}/a2a/v0.3` : undefined)
  const { headers } = answer
  expect(headers.get('vary')).toBe(path.startsWith(shared) ? 'A2A-Version' : null)
  expect(headers.get('cache-control')).toBe('public, max-age=60')
  const modified = headers.get('last-modified') ?? ''
  expect(Date.parse(modified)).toBeLessThanOrEqual(Date.now())
  const etag = headers.get('etag') ?? ''
  const again = await fetch(agent.url + path, { headers: { ...headersSent, 'if-none-match': etag } })
  expect([again.status, again.headers.get('last-modified')]).toEqual([304, modified])
  const since = await fetch(agent.url + path, { headers: { ...headersSent, 'if-modified-since': modified } })
  expect([since.status, since.headers.get('etag'), await since.text()]).toEqual([304, etag, ''])
})

test('the cards of the two versions at one path have different ETags', async () => {
  const etags = await Promise.all(
    ['1.0', '0.3'].map(async (version) => {
      const answer = await fetch(agent.url + shared, { headers: { 'a2a-version': version } })
      return answer.headers.get('etag')
    }),
  )
  expect(new Set(etags).size).toBe(2)
})

test.each([
  ['PUT', '/a2a/v1/tasks/x', 405, 'GET'],
  ['DELETE', '/a2a/v1/tasks/x:cancel', 405, 'GET, POST'],
  ['GET', '/a2a/v1/message:send', 405, 'POST'],
  ['POST', '/a2a/v1/nothing', 404, null],
])('%s %s is answered with status %i in the form of REST', async (method, path, status, allow) => {
  const answer = await fetch(agent.url + path, { method })
  expect([answer.status, answer.headers.get('allow')]).toEqual([status, allow])
  expect(await answer.json()).toMatchObject({ error: { code: status } })
})

test.each([
  ['/a2a/v1', -32005],
  ['/a2a/v1/message:send', 415],
  ['/message:send', 415],
  ['/a2a/v0.3', -32600],
])('POST %s with another media type receives 415', async (path, code) => {
  const headers = { 'content-type': 'text/xml', 'a2a-version': '' }
  const answer = await raw(agent, { path, headers, body: '<x/>' })
  expect(answer.status).toBe(415)
  expect(answer.json.error.code).toBe(code)
})
