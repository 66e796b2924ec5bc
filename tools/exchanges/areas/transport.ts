import type { Recorder } from '../recorder.ts'
import { bearer, ids, rpc, text, type World } from '../world.ts'

/** HTTP: origins, methods, sizes, paths, forwarded headers, agents without capabilities. */
export async function transport(recorder: Recorder, world: World): Promise<void> {
  const { agents, gateway, bare } = world.deployment
  for (const [name, url] of Object.entries({ echo: agents['echo'] ?? '', gateway, bare })) {
    await origins(recorder, name, url)
    await methods(recorder, name, url)
    await sizes(recorder, world, name, url)
  }
  await paths(recorder, world)
  await capabilities(recorder, world)
}

async function origins(recorder: Recorder, name: string, url: string): Promise<void> {
  const preflight = (title: string, origin: string, more: Record<string, string> = {}) => {
    const asked = {
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'authorization,x-did',
    }
    const headers = { origin, ...asked, ...more }
    return recorder.exchange(`${title} at ${name}`, { method: 'OPTIONS', url: `${url}/`, headers })
  }
  await preflight('preflight', 'https://app.example')
  await preflight('preflight of another origin', 'https://evil.example')
  await preflight('preflight of DELETE', 'https://app.example', { 'access-control-request-method': 'DELETE' })
  await recorder.exchange(`OPTIONS without an origin at ${name}`, { method: 'OPTIONS', url: `${url}/` })
  for (const origin of ['https://app.example', 'https://evil.example', 'null']) {
    await recorder.exchange(`GET from ${origin} at ${name}`, {
      url: `${url}/agent/skills`,
      headers: { origin },
    })
  }
  await recorder.exchange(`refusal for a page at ${name}`, {
    method: 'POST',
    url: `${url}/`,
    headers: { origin: 'https://app.example', 'content-type': 'application/json' },
    body: {},
  })
}

async function methods(recorder: Recorder, name: string, url: string): Promise<void> {
  const wrong: [string, string][] = [
    ['POST', '/health'],
    ['DELETE', '/metrics'],
    ['POST', '/.well-known/agent.json'],
    ['PUT', '/agent/skills'],
    ['GET', '/agent/negotiation'],
    ['PATCH', '/'],
    ['DELETE', '/did/resolve'],
    ['GET', '/api/start-payment-session'],
    ['HEAD', '/agent/skills'],
    ['GET', '/nothing'],
    ['POST', '/nothing'],
    ['GET', '/%ff'],
    ['GET', '/agent/skills/%2e%2e'],
    ['GET', '/agent//skills'],
    ['GET', '/health/'],
    ['GET', '/health?verbose=yes'],
    ['GET', `/${'a'.repeat(300)}`],
  ]
  const body = (text: string) => text.replace(/"(uptime_seconds)":\d+/, '"$1":0')
  for (const [method, path] of wrong) {
    await recorder.exchange(
      `${method} ${path.slice(0, 40)} at ${name}`,
      { method, url: `${url}${path}` },
      { body },
    )
  }
}

async function sizes(recorder: Recorder, { callers }: World, name: string, url: string): Promise<void> {
  const headers = { ...bearer(callers.developer.token), 'content-type': 'application/json' }
  const tooLarge = { ...headers, 'content-length': String(11 * 1024 * 1024) }
  // Only the head, because the server refuses the request before the body is sent.
  await recorder.exchange(`11 MiB at ${name}`, {
    method: 'POST',
    url: `${url}/`,
    headers: { ...tooLarge, connection: 'close' },
  })
  const encoded = { ...headers, 'content-encoding': 'gzip' }
  await recorder.exchange(`gzip at ${name}`, { method: 'POST', url: `${url}/`, headers: encoded, body: '{}' })
}

async function paths(recorder: Recorder, world: World): Promise<void> {
  const { gateway } = world.deployment
  const alice = await world.client(recorder, 'alice')
  const get = (path: string) => recorder.exchange(`GET ${path}`, { url: `${gateway}${path}` })
  await get('/agents')
  await get('/agents/')
  await get('/agents/nobody')
  await get('/agents/nobody/health')
  await get('/agents/nobody/.well-known/agent.json')
  await get('/agents/Echo/agent/skills')
  await get('/agents/echo')
  await get('/agents/echo/nothing')
  await get('/agents/echo/../plain/agent/skills')
  await get('/agents/echo/%2e%2e/agent/skills')
  await get('/agents/echo/agent%2fskills')
  await get('/agents/echo/%zz')
  await get('/agents/echo/agent/skills?x=1')
  await get('/agents/echo//agent/skills')
  const list = rpc(`${gateway}/agents/nobody`, alice, 'tasks/list', {})
  await recorder.exchange('a call to a missing agent', list)
  const loop = rpc(`${gateway}/`, alice, 'tasks/list', {})
  await recorder.exchange('a header Via of another gateway', {
    ...loop,
    headers: { ...loop.headers, via: '1.1 other' },
  })
  const trace = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  await recorder.exchange('a trace', { ...loop, headers: { ...loop.headers, ...trace } })
  await recorder.exchange('forwarded headers', {
    ...loop,
    headers: { ...loop.headers, 'x-forwarded-host': 'evil.example', 'x-forwarded-proto': 'https' },
  })
  await recorder.exchange('card with a forwarded host', {
    url: `${gateway}/agents/plain/.well-known/agent.json`,
    headers: { 'x-forwarded-host': 'evil.example', host: 'evil.example' },
  })
  await recorder.exchange('a request id of 300 characters', {
    url: `${gateway}/agent/skills/nothing`,
    headers: { 'x-request-id': 'r'.repeat(300) },
  })
}

/** Records an agent without streams, webhooks or an extended card. */
async function capabilities(recorder: Recorder, world: World): Promise<void> {
  const { agents, gateway } = world.deployment
  const [carol, id] = [await world.client(recorder, 'carol'), ids('capabilities')]
  for (const [name, url] of Object.entries({
    plain: `${agents['plain']}/`,
    gateway: `${gateway}/agents/plain`,
  })) {
    const call = (method: string, params: object) =>
      recorder.exchange(`${method} of plain at ${name}`, rpc(url, carol, method, params))
    await call('message/stream', text(id(), 'abc'))
    await call('tasks/resubscribe', { task_id: id() })
    await call('agent/getAuthenticatedExtendedCard', {})
    const config = { id: id(), url: 'https://hooks.example' }
    for (const method of ['set', 'get', 'list', 'delete']) {
      const params = {
        id: id(),
        task_id: id(),
        push_notification_config: config,
        push_notification_config_id: config.id,
      }
      await call(`tasks/pushNotificationConfig/${method}`, params)
    }
    await call('message/send', text(id(), 'abc', {}, { push_notification_config: config }))
  }
}
