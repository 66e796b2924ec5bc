import { deliveryDetail, deliveryList } from '@parley/wire/codecs/answers/operator/deliveries'
import { paymentList, usageAnswer } from '@parley/wire/codecs/answers/operator/usage'
import { beforeAll, beforeEach, expect, test } from 'vitest'
import { agent, bearer, call, fail, gateway, gatewayForAllTests, restart, saying } from '../../testing.ts'

gatewayForAllTests()

const admin = 'agent:read agent:write agent:admin'
const hostile = '\u001b[31m<script>\u202e'
let requests: { path: string; body: unknown }[] = []

const at = (second: number) => new Date(Date.UTC(2026, 10, 22, 12, 0, second)).toISOString()
const delivery = (id: string, second: number, more: object = {}) => ({
  config_id: `c-${id}`,
  task_id: id,
  owner: 'alice',
  url: 'https://example.com/hook',
  dialect: null,
  state: 'dropped',
  settled: 2,
  events: 2,
  attempts: 2,
  delivered: 1,
  dropped: { rejected: 1 },
  last_status: 400,
  last_error: hostile,
  last_attempt_at: at(second),
  set_at: at(second),
  ...more,
})
const detail = (id: string, second: number, more: object = {}) => ({
  ...delivery(id, second, more),
  tries: [
    { at: at(second), sequence: 2, duration_ms: 12, status: 400, error: hostile, next_attempt_at: null },
  ],
  bodies: [{ sequence: 1, settled: true, body: { text: 'secret answer' } }],
})
const payment = (id: string, second: number, more: object = {}) => ({
  payment_id: id,
  kind: 'direct',
  state: 'payment-orphaned',
  owner: 'alice',
  payer: hostile,
  amount: '0.01',
  amount_atomic: '10000',
  decimals: 6,
  asset: '0xa',
  asset_name: 'USDC',
  network: 'eip155:84532',
  pay_to: '0xb',
  attempts: 0,
  created_at: at(second),
  updated_at: at(second),
  ...more,
})
const usage = (day: string, owner: string, more: object = {}) => ({
  day,
  owner,
  tasks: 2,
  completed: 1,
  failed: 1,
  worked_ms: 10,
  input_tokens: 5,
  output_tokens: 1,
  paid: [{ asset: '0xa', asset_name: 'USDC', network: 'eip155:84532', amount: '0.1' }],
  ...more,
})

type Row = ReturnType<typeof delivery>
async function agentWith(name: string, rows: Row[], payments: ReturnType<typeof payment>[], days: object[]) {
  const one = await agent(name, `The agent ${name}`)
  one.get = (path, _request, response) => {
    requests.push({ path, body: undefined })
    const url = new URL(path, 'http://agent')
    const [, , group, task] = url.pathname.split('/')
    const search = url.searchParams
    const page = <T>(items: T[], timeOf: (item: T) => string) => {
      const until = Date.parse(search.get('until') ?? '9999-01-01')
      const found = items.filter((item) => Date.parse(timeOf(item)) < until)
      const shown = found.slice(0, Number(search.get('limit')))
      return { shown, next_cursor: shown.length < found.length ? 'more' : null }
    }
    if (group === 'usage') return { usage: days, next_cursor: null }
    if (group === 'payments') {
      const { shown, next_cursor } = page(payments, (item) => item.created_at)
      return { payments: shown, counts: { 'payment-orphaned': payments.length }, next_cursor }
    }
    const row = rows.find(({ task_id }) => task_id === task)
    if (row !== undefined) return detail(row.task_id, 1, row)
    if (task !== undefined) {
      fail(response, null, 404, -32040, { reason: 'delivery' })
      return 'later'
    }
    const { shown, next_cursor } = page(rows, (item) => item.set_at)
    return { deliveries: shown, next_cursor }
  }
  return one
}

async function request(
  path: string,
  { client = 'root', scope = admin, body = undefined as object | undefined } = {},
) {
  const response = await fetch(`${gateway().addresses.public}/operator/${path}`, {
    headers: { authorization: bearer(client, scope), 'content-type': 'application/json' },
    ...(body && { method: 'POST', body: JSON.stringify(body) }),
  })
  return { status: response.status, json: await response.json() }
}
const list = async (query = '', options: Parameters<typeof request>[1] = {}) =>
  deliveryList.parse((await request(`deliveries${query}`, options)).json)

beforeAll(async () => {
  await agentWith(
    'sky',
    [delivery('s5', 5), delivery('s3', 3, { owner: 'bob' }), delivery('s1', 1)],
    [payment('p4', 4), payment('p2', 2, { owner: 'bob' })],
    [
      usage('2026-11-21', 'alice'),
      usage('2026-11-22', 'alice'),
      usage('2026-11-22', 'bob'),
      usage('2020-01-01', 'bob'),
    ],
  )
  await agentWith(
    'sea',
    [delivery('m4', 4), delivery('m2', 2)],
    [payment('p3', 3)],
    [
      usage('2026-11-22', 'alice', {
        paid: [{ asset: '0xa', asset_name: hostile, network: 'eip155:84532', amount: '1e9' }],
      }),
    ],
  )
  await agent('lawless', 'Answers with another form').then((one) => (one.get = () => ({ deliveries: [{}] })))
  await agent('far', 'An external agent that counts the stars', { origin: 'registered' })
  await call('message/send', saying('count the stars far away'), { authorization: bearer('carol') })
})
beforeEach(() => {
  requests = []
})

test('webhooks of all agents are listed by the time they were set, page by page, without the controls of hostile texts', async () => {
  const ids: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const page: Awaited<ReturnType<typeof list>> = await list(`?limit=2${cursor && `&cursor=${cursor}`}`)
    ids.push(...page.deliveries.map(({ agent: slug, task_id: id }) => `${slug} ${id}`))
    expect(page.unread).toMatchObject([{ agent: 'lawless' }])
    expect(page.deliveries[0]?.last_error).toBe('<script>')
    cursor = page.next_cursor
  }
  expect(ids).toEqual(['sky s5', 'sea m4', 'sky s3', 'sea m2', 'sky s1'])
})

test('a caller sees its own webhooks only, even if an agent returns those of others', async () => {
  const own = await list('', { client: 'bob', scope: 'agent:read' })
  expect(own.deliveries.map(({ task_id: id }) => id)).toEqual(['s3'])
  expect((await list('?owner=alice', { client: 'bob', scope: 'agent:read' })).deliveries).toEqual([])
  const other = await request('deliveries/sky/s5/c-s5', { client: 'bob', scope: 'agent:read' })
  expect(other.status).toBe(404)
  expect((await request('deliveries', { client: 'bob', scope: 'agent:write' })).status).toBe(403)
})

test('one webhook is read with its attempts and bodies, and what an agent does not have is not found', async () => {
  const found = deliveryDetail.parse((await request('deliveries/sky/s5/c-s5')).json)
  expect(found).toMatchObject({ agent: 'sky', tries: [{ error: '<script>' }], bodies: [{ sequence: 1 }] })
  for (const path of ['sky/none/x', 'nobody/s5/c-s5', 'far/x/y', 'sky/..%2F..%2Fhealth/c'])
    expect((await request(`deliveries/${path}`)).status).toBe(404)
})

test.each(['deliveries/sky/s5/c-s5/resend', 'deliveries/resend'])(
  'a caller that may only read cannot POST %s',
  async (path) => {
    const body = { since: at(1) }
    const { status } = await request(path, { client: 'alice', scope: 'agent:read', body })
    expect(status).toBe(403)
  },
)

test('usage is summed over the fields that are not named, with external agents from the recorded routes', async () => {
  const read = async (query: string, options: Parameters<typeof request>[1] = {}) =>
    usageAnswer.parse((await request(`usage?since=2026-11-20&until=2026-11-22&${query}`, options)).json).usage
  expect(await read('by=owner')).toMatchObject([
    { owner: 'alice', tasks: 6, worked_ms: 30, paid: [{ amount: '0.2' }] },
    { owner: 'bob', tasks: 2, paid: [{ amount: '0.1' }] },
  ])
  expect((await read('by=day&agent=sky')).map(({ day, tasks }) => [day, tasks])).toEqual([
    ['2026-11-22', 4],
    ['2026-11-21', 2],
  ])
  expect(await read('by=agent', { client: 'bob', scope: 'agent:read' })).toMatchObject([
    { agent: 'sky', tasks: 2 },
  ])
  const today = new Date().toISOString().slice(0, 10)
  const external = usageAnswer.parse((await request(`usage?since=${today}&agent=far`)).json)
  expect(external.usage).toMatchObject([{ agent: 'far', owner: 'carol', tasks: 1, completed: 0 }])
})

test.each([
  'usage?since=2026-11-23&until=2026-11-22',
  'usage?by=secret',
  'usage?since=2020-01-01',
  'deliveries?limit=0',
  'payments?cursor=x',
])('GET /operator/%s is refused', async (path) => {
  expect((await request(path)).status).toBe(400)
})

test('payments of all agents are listed newest first with the counts of all agents', async () => {
  const first = paymentList.parse((await request('payments?state=orphaned&limit=2')).json)
  expect(first.payments.map(({ agent: slug, payment_id: id }) => `${slug} ${id}`)).toEqual([
    'sky p4',
    'sea p3',
  ])
  expect(first.counts).toEqual({ 'payment-orphaned': 3 })
  expect(first.payments[0]?.payer).toBe('<script>')
  const rest = paymentList.parse(
    (await request(`payments?state=orphaned&limit=2&cursor=${first.next_cursor}`)).json,
  )
  expect(rest.payments.map(({ payment_id: id }) => id)).toEqual(['p2'])
  const own = paymentList.parse((await request('payments', { client: 'bob', scope: 'agent:read' })).json)
  expect(own.payments.map(({ payment_id: id }) => id)).toEqual(['p2'])
})

test('the overview names failing webhooks and orphaned payments', async () => {
  const { json } = await request('overview')
  const kinds = (json as { attention: { kind: string; count: number }[] }).attention
  expect(kinds).toContainEqual(expect.objectContaining({ kind: 'payment_orphaned', count: 3 }))
  expect(kinds).toContainEqual(expect.objectContaining({ kind: 'delivery_failing' }))
})

test('without OPERATOR_READS_TEXTS, an operator sees neither the path of a receiver nor its errors with it, and the owner does', async () => {
  await restart({ OPERATOR_READS_TEXTS: 'no' })
  const url = 'https://user:pass@hooks.example/T0/secret?key=hidden'
  const error = `404 from ${url} for POST /T0/secret?key=hidden`
  const leaky = await agentWith('leaky', [delivery('l1', 9, { url, last_error: error })], [], [])
  const { get } = leaky
  leaky.get = (path, ...more) => {
    const answer = get?.(path, ...more)
    const tries = [{ at: at(9), sequence: 1, duration_ms: 1, status: 404, error, next_attempt_at: null }]
    return path.includes('/l1/') && typeof answer === 'object' ? { ...answer, tries } : answer
  }
  const [row] = (await list('?agent=leaky')).deliveries
  expect(row).toMatchObject({
    url: 'https://hooks.example/…',
    last_error: expect.stringContaining('404 from'),
  })
  const found = (await request('deliveries/leaky/l1/c-l1')).json
  expect(found).toMatchObject({ bodies: [] })
  expect(JSON.stringify([row, found])).not.toMatch(/secret|hidden|pass/)
  const own = await list('?agent=leaky', { client: 'alice', scope: 'agent:read' })
  expect(own.deliveries[0]).toMatchObject({ url, last_error: error })
})
