import { overviewAnswer } from '@parley/wire/codecs/answers/operator/console'
import { beforeAll, expect, test } from 'vitest'
import { agent, bearer, call, fail, gateway, gatewayForAllTests, post, saying } from './testing.ts'

gatewayForAllTests()

/** The samples of `GET /metrics` by name and labels. */
async function samples(): Promise<Record<string, number>> {
  const text = await (await fetch(`${gateway().addresses.local}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
}

let after: Record<string, number> = {}
let sky: Awaited<ReturnType<typeof agent>>

beforeAll(async () => {
  sky = await agent('sky', 'Weather forecast for any city')
  const busy = await agent('busy', 'Plays chess, suggests the best move')
  busy.on['message/send'] = ({ response, id }) => fail(response, id, 503, -32042, { reason: 'queue_full' })
  await call('message/send', saying('weather forecast'))
  await call('message/send', saying('suggest the best move in chess'))
  await call('message/send', saying('zzqx brrrgl'))
  const negotiation = { task_summary: 'weather forecast' }
  await post('/agent/negotiation', JSON.stringify(negotiation))
  const named = { jsonrpc: '2.0', id: 1, method: 'message/send', params: saying('weather') }
  await post('/agents/sky/', JSON.stringify(named))
  await post('/agents/sky/', JSON.stringify(named), { authorization: bearer('bob') })
  after = await samples()
})

test('decisions are counted by outcome and agent, and the scores of chosen agents are a histogram', () => {
  expect(after).toMatchObject({
    'gateway_decisions_total{agent="sky",outcome="accepted"}': 1,
    'gateway_decisions_total{agent="sky",outcome="answered"}': 1,
    'gateway_decisions_total{agent="",outcome="rejected"}': 1,
    'gateway_decisions_total{agent="",outcome="none"}': 1,
    'gateway_failovers_total{agent="busy"}': 1,
    gateway_decision_score_count: 1,
    'gateway_decision_score_bucket{le="+Inf"}': 1,
  })
})

test('calls are counted by agent, whether they name it or not', () => {
  expect(after).toMatchObject({
    'gateway_calls_total{agent="sky",outcome="answered"}': 3,
    'gateway_call_duration_seconds_count{agent="sky"}': 3,
    'gateway_calls_total{agent="busy",outcome="failed"}': 1,
    'gateway_agents{status="ready"}': 2,
  })
})

test('the overview shows the calls of the last minutes', async () => {
  const response = await fetch(`${gateway().addresses.public}/operator/overview`, {
    headers: { authorization: bearer('root', 'agent:read agent:admin') },
  })
  const { calls } = overviewAnswer.parse(await response.json())
  expect(calls).toEqual([
    { from: 'callers', to: 'sky', count: 3, errors: 0, p50_ms: expect.any(Number) },
    { from: 'callers', to: 'busy', count: 1, errors: 1, p50_ms: expect.any(Number) },
  ])
})

test('a request that another route sends within the gateway is not counted as an HTTP request', async () => {
  sky.on['message/send'] = ({ params }) => ({
    ...sky.take(params),
    status: { state: 'completed', timestamp: new Date().toISOString() },
    artifacts: [],
  })
  const before = await samples()
  const completion = { model: 'sky', messages: [{ role: 'user', content: 'weather' }] }
  await post('/v1/chat/completions', JSON.stringify({ ...completion, stream: false }))
  const now = await samples()
  const grown = Object.keys(now).filter(
    (name) => name.startsWith('http_requests_total') && now[name] !== (before[name] ?? 0),
  )
  const endpoints = grown.map((name) => /endpoint="([^"]*)"/.exec(name)?.[1])
  expect(new Set(endpoints)).toEqual(new Set(['/metrics', '/v1/chat/completions']))
})
