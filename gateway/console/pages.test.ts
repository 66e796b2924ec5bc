import { once } from 'node:events'
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { beforeAll, expect, test } from 'vitest'
import {
  agent,
  embeddedOAuth,
  FakeAgent,
  fail,
  gateway,
  gatewayForAllTests,
  operatorClient,
  saying,
} from '../testing.ts'
import { addAccount, TestBrowser } from './testing.ts'

gatewayForAllTests(embeddedOAuth)

const origin = () => gateway().addresses.public
const browser = () => new TestBrowser(origin())
let carl: TestBrowser
let olga: TestBrowser
let poet: FakeAgent

beforeAll(async () => {
  const token = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  carl = browser()
  await carl.signIn('carl', await addAccount(origin(), token, { name: 'carl', role: 'caller' }))
  olga = browser()
  await olga.signIn('olga', await addAccount(origin(), token, { name: 'olga', role: 'operator' }))
  poet = await agent('poet', 'Writes poems')
})

const json = { 'content-type': 'application/json' }
const rpc = (method: string, params: object) => ({
  method: 'POST',
  headers: json,
  body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
})

/** Sends the path as it is, which `fetch` would normalize. */
async function rawGet(
  path: string,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Buffer }> {
  const { hostname, port } = new URL(origin())
  const request = http.get({ hostname, port, path, headers })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  return { status: response.statusCode ?? 0, body: Buffer.concat(chunks) }
}

test('GET / sends browsers to the console and answers 405 to other clients', async () => {
  const page = await browser().fetch('/')
  expect([page.status, page.headers.get('location')]).toEqual([302, '/console/'])
  const other = await fetch(origin(), { headers: { accept: '*/*' } })
  expect([other.status, other.headers.get('allow')]).toEqual([405, 'POST'])
})

test.each(['/console/', '/console/tasks', '/console/tasks/01a2?tab=events', '/console/a/b/c.d'])(
  'GET %s returns the page with a policy that allows no inline code but its import map',
  async (path) => {
    const response = await browser().fetch(path)
    const policy = response.headers.get('content-security-policy') ?? ''
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
    expect(policy).toMatch(
      /^default-src 'none'; script-src [\w.:-]+\/console\/assets\/ .*[\w.:-]+\/console\/vendor\/ 'sha256-[\w+/=]{44}'; style-src 'self'; .*frame-ancestors 'none'; base-uri 'none'$/,
    )
    expect(policy).not.toContain('unsafe')
    expect(await response.text()).toContain('<script type="importmap">')
  },
)

test('scripts are loaded from the folders of the console only, at the public host and that of the request', async () => {
  const policyFor = async (host: string) => {
    const { hostname, port } = new URL(origin())
    const request = http.get({ hostname, port, path: '/console/', headers: { host } })
    const [response] = (await once(request, 'response')) as [http.IncomingMessage]
    response.resume()
    return /script-src ([^;]*) 'sha256/
      .exec(String(response.headers['content-security-policy']))?.[1]
      ?.split(' ')
  }
  const { host } = new URL(gateway().addresses.public)
  const own = [`${host}/console/assets/`, `${host}/console/vendor/`]
  expect(await policyFor(host)).toEqual(own)
  const proxied = ['parley.example/console/assets/', 'parley.example/console/vendor/']
  expect(await policyFor('parley.example')).toEqual(expect.arrayContaining([...own, ...proxied]))
  // A policy cannot name an IPv6 address.
  expect(await policyFor('[::1]:80')).toEqual(["'self'"])
})

test('each module of the import map exists, and is compressed', async () => {
  const page = await (await browser().fetch('/console/')).text()
  const map = JSON.parse(/<script type="importmap">(.*?)<\/script>/s.exec(page)?.[1] ?? '') as {
    imports: Record<string, string>
  }
  const files = Object.values(map.imports)
  expect(files.length).toBeGreaterThan(4)
  const plain = await Promise.all(files.map((file) => rawGet(file)))
  const packed = await Promise.all(files.map((file) => rawGet(file, { 'accept-encoding': 'gzip, br' })))
  const zipped = await Promise.all(files.map((file) => rawGet(file, { 'accept-encoding': 'gzip, br;q=0' })))
  expect(plain.map(({ status }) => status)).toEqual(files.map(() => 200))
  expect(packed.map(({ body }) => brotliDecompressSync(body))).toEqual(plain.map(({ body }) => body))
  expect(zipped.map(({ body }) => gunzipSync(body))).toEqual(plain.map(({ body }) => body))
})

test('the page that draws PDF documents allows its own module and no request, also outside of a sandboxed frame', async () => {
  const response = await browser().fetch('/console/pdf-frame')
  const policy = response.headers.get('content-security-policy') ?? ''
  const [, nonce = ''] = /script-src 'nonce-([^']+)'/.exec(policy) ?? []
  expect(policy).toBe(
    `sandbox allow-scripts; default-src 'none'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'`,
  )
  const page = await response.text()
  const [viewer = '', library = ''] = [/src="(\S+\.js)"/, /"unpdf\/pdfjs":"(\S+?)"/].map(
    (pattern) => pattern.exec(page)?.[1],
  )
  for (const file of [viewer, library]) {
    const { status, headers } = await fetch(`${origin()}${file}`)
    expect([status, headers.get('access-control-allow-origin')]).toEqual([200, '*'])
  }
  const next = await browser().fetch('/console/pdf-frame')
  expect(next.headers.get('content-security-policy')).not.toBe(policy)
})

test('a browser that has the current version of a file receives 304', async () => {
  const file = '/console/vendor/preact/dist/preact.mjs'
  const first = await browser().fetch(file)
  const etag = first.headers.get('etag') ?? ''
  expect((await rawGet(file, { 'if-none-match': etag })).status).toBe(304)
  for (const path of ['/console/', '/console/tasks', '/console/assets/style.css']) {
    const known = (await browser().fetch(path)).headers.get('etag') ?? ''
    expect((await rawGet(path, { 'if-none-match': known })).status).toBe(304)
  }
})

/** The addresses that the static imports of a module load. */
async function importsOf(address: string, map: Record<string, string>): Promise<string[]> {
  const text = (await rawGet(address)).body.toString()
  const names = [...text.matchAll(/(?:^|;)import\b[^'";]*['"]([^'"]+)['"]/gm)].map(([, name = '']) => name)
  return names.map((name) => map[name] ?? new URL(name, origin() + address).pathname)
}

test('the page names all modules of the overview, so that a browser loads them together', async () => {
  const page = await (await browser().fetch('/console/')).text()
  const { imports } = JSON.parse(/<script type="importmap">(.*?)<\/script>/s.exec(page)?.[1] ?? '') as {
    imports: Record<string, string>
  }
  const loaded = new Set(['/console/assets/app.js', '/console/assets/screens/overview/overview.js'])
  // The loop visits the modules that it adds.
  for (const address of loaded) for (const imported of await importsOf(address, imports)) loaded.add(imported)
  const named = [...page.matchAll(/<link rel="modulepreload" href="([^"]+)">/g)].map(([, href]) => href)
  expect(new Set([...named, '/console/assets/app.js'])).toEqual(loaded)
  expect(await (await browser().fetch('/console/tasks')).text()).not.toContain('overview.js')
})

test('all style sheets of the console are one file', async () => {
  const folder = path.join(import.meta.dirname, '../../console/public/style')
  const sheets = await Promise.all(globSync(`${folder}/*.css`).map((file) => readFile(file, 'utf8')))
  const served = (await rawGet('/console/assets/style.css')).body.toString()
  expect(sheets.length).toBeGreaterThan(5)
  expect(sheets.filter((sheet) => !served.includes(sheet))).toEqual([])
  expect(served.length).toBeLessThan(sheets.join('\n').length + 10)
})

test.each([
  '/console/assets/../package.json',
  '/console/assets/..%2fpackage.json',
  '/console/assets/%2e%2e/package.json',
  '/console/assets/..%5cpackage.json',
  '/console/assets/%00',
  '/console/assets/.hidden',
  '/console/vendor/preact/package.json',
  '/console/vendor/preact/dist/../package.json',
  '/console/vendor/../../package.json',
  '/console/vendor/constructor',
])('GET %s returns no file', async (path) => {
  const { status, body } = await rawGet(path)
  expect([400, 403, 404]).toContain(status)
  expect(body.toString()).not.toContain('"name"')
})

test('a person sends messages in the name of the client of the account', async () => {
  const answer = await carl.api('/', rpc('message/send', saying('a poem please')))
  expect(answer.status).toBe(200)
  const sent = poet.sent().at(-1)
  expect(sent?.headers['cookie']).toBeUndefined()
  expect(sent?.headers['x-csrf-token']).toBeUndefined()
  const token = sent?.headers.authorization?.replace('Bearer ', '') ?? ''
  expect(token).not.toBe(carl.cookie('parley_console'))
  const sessions = (await (await olga.api('/operator/sessions')).json()) as { sessions: unknown[] }
  expect(sessions.sessions).toHaveLength(2)
})

test('an operator’s requests reach agents without agent:admin, and the gateway’s own routes with it', async () => {
  const sent = await olga.api(`/agents/${poet.slug}/`, rpc('message/send', saying('a poem please')))
  expect(sent.status).toBe(200)
  expect((await olga.api('/clients')).status).toBe(200)
  expect((await carl.api('/clients')).status).toBe(403)
  expect((await carl.api('/operator/accounts')).status).toBe(403)
})

test.each([
  ['without the token of the session', { 'x-csrf-token': '' }],
  ['with the token of another session', { 'x-csrf-token': 'A'.repeat(43) }],
  ['from a page of another site', { 'sec-fetch-site': 'cross-site' }],
  ['from another subdomain', { 'sec-fetch-site': 'same-site' }],
  ['from another origin', { origin: 'https://evil.example' }],
  ['from a sandboxed frame', { origin: 'null' }],
  ['of a form', { 'content-type': 'text/plain', 'x-csrf-token': '' }],
])('a change %s is refused', async (_, headers) => {
  const { method, body } = rpc('message/send', saying('a poem please'))
  const before = poet.sent().length
  expect((await carl.api('/', { method, body, headers: { ...json, ...headers } })).status).toBe(403)
  expect(poet.sent()).toHaveLength(before)
})

test.each([
  ['without an origin', {}],
  ['from a page of the console', { 'sec-fetch-site': 'same-origin' }],
])('a change %s is accepted', async (_, headers) => {
  const { method, body } = rpc('message/send', saying('a poem please'))
  expect((await carl.api('/', { method, body, headers: { ...json, ...headers } })).status).toBe(200)
})

test('a page of another site reads nothing', async () => {
  const headers = { 'sec-fetch-site': 'cross-site' }
  expect((await carl.api('/registry/agents', { headers })).status).toBe(403)
  expect((await carl.fetch('/console/session', { headers })).status).toBe(403)
})

test.each([
  '/oauth2/token',
  '/console/session',
  '/metrics',
  '/%6fperator/accounts',
  '/agents/../operator/accounts',
  '/agents/%2e%2e/operator/accounts',
  '//operator/accounts',
  '/mcp',
])('the console does not reach %s', async (path) => {
  const cookie = olga.cookiesFor('/console/api')
  expect((await rawGet(`/console/api${path}`, { cookie })).status).toBe(404)
})

test('requests with PUT, DELETE, conditions and errors pass unchanged', async () => {
  const policy = `/registry/agents/${poet.slug}/policy`
  const body = JSON.stringify({ default: 'allow', rules: [] })
  const set = await olga.api(policy, { method: 'PUT', headers: json, body })
  expect(set.status).toBe(200)
  const stale = { ...json, 'if-match': '"stale"' }
  expect((await olga.api(policy, { method: 'PUT', headers: stale, body })).status).toBe(412)
  expect((await olga.api(policy, { method: 'DELETE' })).status).toBe(200)
  expect((await olga.api('/registry/agents/none')).status).toBe(404)
})

test('a 401 of an agent does not look like the end of the session', async () => {
  poet.on['tasks/list'] = ({ response }) => void response.writeHead(401).end('{}')
  const answer = await carl.api(`/agents/${poet.slug}/`, rpc('tasks/list', {}))
  expect(answer.status).toBe(403)
  expect((await carl.fetch('/console/session')).status).toBe(200)
  delete poet.on['tasks/list']
})

test.each([
  ['an HTML page', 'text/html', 'application/octet-stream', 'attachment'],
  ['a script', 'text/javascript', 'application/octet-stream', 'attachment'],
  ['JSON', 'application/json', 'application/json', null],
])(
  '%s of an agent is not shown at the origin of the console, and its other headers are left out',
  async (_, type, shown, disposition) => {
    poet.get = (_path, _request, response) => {
      response.writeHead(200, {
        'content-type': type,
        'set-cookie': 'parley_console=planted',
        'clear-site-data': '"*"',
        refresh: '0; url=https://evil.example',
        link: '<https://evil.example/x.css>; rel=stylesheet',
        'service-worker-allowed': '/',
        etag: '"1"',
      })
      response.end('<script>fetch("/console/session")</script>')
      return 'later'
    }
    const { headers } = await carl.api(`/agents/${poet.slug}/page`)
    expect(headers.get('content-type')).toBe(shown)
    expect(headers.get('content-disposition')).toBe(disposition)
    expect(headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none'/)
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('etag')).toBe('"1"')
    const acting = ['set-cookie', 'clear-site-data', 'refresh', 'link', 'service-worker-allowed']
    expect(acting.filter((name) => headers.has(name))).toEqual([])
    poet.get = undefined
  },
)

test('a redirect of an agent is an error of the agent', async () => {
  poet.get = (_path, _request, response) => {
    response.writeHead(302, { location: 'https://evil.example/' }).end()
    return 'later'
  }
  const answer = await carl.api(`/agents/${poet.slug}/page`)
  expect([answer.status, answer.headers.get('location')]).toEqual([502, null])
  expect(await answer.json()).toMatchObject({ error: { data: { reason: 'redirect' } } })
  poet.get = undefined
})

test('a request without a session is answered 401 with a sentence', async () => {
  const answer = await browser().fetch('/console/api/registry/agents')
  expect(answer.status).toBe(401)
  expect(answer.headers.get('www-authenticate')).toBeNull()
  expect(await answer.json()).toMatchObject({
    error: { message: expect.stringContaining('/console/sign-in') },
  })
})

test('a stream of events ends with its session, and the next request is refused', async () => {
  const fresh = browser()
  const token = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  await fresh.signIn('sam', await addAccount(origin(), token, { name: 'sam', role: 'operator' }))
  const { csrf } = await fresh.session()
  const stream = await fresh.api('/operator/events', { headers: { accept: 'text/event-stream' } })
  expect(stream.headers.get('content-type')).toContain('text/event-stream')
  const reading = stream.text()
  const { sessions } = (await (await olga.api('/operator/sessions')).json()) as {
    sessions: { id: string; name: string }[]
  }
  const id = sessions.find(({ name }) => name === 'sam')?.id ?? ''
  expect((await olga.api(`/operator/sessions/${id}`, { method: 'DELETE' })).status).toBe(200)
  await reading
  const next = await fresh.fetch('/console/api/operator/events', { headers: { 'x-csrf-token': csrf } })
  expect(next.status).toBe(401)
})

test('a stream of events ends when the client of the account is disabled', async () => {
  const fresh = browser()
  const token = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  await fresh.signIn('dana', await addAccount(origin(), token, { name: 'dana', role: 'operator' }))
  const { client_id: id } = await fresh.session()
  const stream = await fresh.api('/operator/events', { headers: { accept: 'text/event-stream' } })
  const disabled = await olga.api('/clients/revoke', {
    method: 'POST',
    headers: json,
    body: JSON.stringify({ id }),
  })
  expect(disabled.status).toBe(200)
  await stream.text()
  expect((await fresh.api('/registry/agents')).status).toBe(403)
})

const html = '<html><script>parent.document.title = "taken"</script></html>'
const png = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')
const file = (bytes: Buffer | string, mimeType: string, name: string) => ({
  kind: 'file',
  file: { bytes: Buffer.from(bytes).toString('base64'), mimeType, name },
})

async function artifactWith(parts: object[]): Promise<(part: number, query?: string) => Promise<Response>> {
  const sent = await carl.api(`/agents/${poet.slug}/`, rpc('message/send', saying('a poem please')))
  const { result } = (await sent.json()) as { result: { id: string } }
  const task = poet.tasks.get(result.id)
  Object.assign(task ?? {}, {
    status: { state: 'completed', timestamp: new Date().toISOString() },
    artifacts: [{ artifact_id: 'a1', name: 'result', parts }],
  })
  return (part, query = '') =>
    carl.fetch(`/console/artifacts/${poet.slug}/${result.id}/a1/${part}${query}`, {
      headers: { 'sec-fetch-site': 'same-origin' },
    })
}

test('an artifact of a task that is too large for the operator is refused with the reason', async () => {
  poet.on['tasks/get'] = ({ response, id }) => fail(response, id, 404, -32001, {})
  poet.get = (_path, _request, response) => {
    response.setHeader('content-type', 'application/json').end(`{"task":"${'x'.repeat(5 * 1024 * 1024)}"}`)
    return 'later'
  }
  const task = '11111111-2222-4333-8444-555555555555'
  const refused = await olga.fetch(`/console/artifacts/${poet.slug}/${task}/a1/0`, {
    headers: { 'sec-fetch-site': 'same-origin' },
  })
  expect(refused.status).toBe(503)
  expect(await refused.text()).toContain('too large')
  delete poet.on['tasks/get']
  poet.get = undefined
})

test('an artifact is shown without active content, in a sandbox', async () => {
  const read = await artifactWith([
    { kind: 'text', text: html },
    file(html, 'text/html', 'page.html'),
    file('<svg onload="alert(1)" xmlns="http://www.w3.org/2000/svg"/>', 'image/svg+xml', 'a.svg'),
    file(png, 'text/html', 'a.png'),
    file(html, 'image/png', 'fake.png'),
    file('%PDF-1.7\u0000', 'application/pdf', 'bill.pdf'),
    { kind: 'data', data: { total: 3 } },
    file('plain \u202Etxt.exe', 'text/plain', '../../\u202Egpj.exe'),
  ])
  const answers = await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((part) => read(part)))
  const types = answers.map(({ headers }) => headers.get('content-type'))
  const plain = 'text/plain; charset=utf-8'
  expect(types).toEqual([plain, plain, plain, 'image/png', plain, 'application/pdf', plain, plain])
  const shown = answers.map(({ headers }) => headers.get('content-disposition')?.split(';')[0])
  expect(shown).toEqual([...Array<string>(5).fill('inline'), 'attachment', 'inline', 'inline'])
  const policies = new Set(answers.map(({ headers }) => headers.get('content-security-policy')))
  expect([...policies]).toEqual([
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'",
  ])
  expect(answers.every(({ headers }) => headers.get('x-content-type-options') === 'nosniff')).toBe(true)
  expect(answers[7]?.headers.get('content-disposition')).toContain('filename="gpj.exe"')
  expect(await answers[7]?.text()).not.toContain('\u202E')
  expect(await answers[6]?.text()).toBe('{\n  "total": 3\n}')
})

test('a part is downloaded unchanged', async () => {
  const read = await artifactWith([
    file(html, 'text/html', 'page.html'),
    { kind: 'text', text: 'a \u202E b' },
  ])
  const page = await read(0, '?download=true')
  expect(page.headers.get('content-disposition')).toMatch(/^attachment; filename="page.html"/)
  expect(page.headers.get('content-type')).toBe('application/octet-stream')
  expect(await page.text()).toBe(html)
  expect(await (await read(1, '?download=true')).text()).toBe('a \u202E b')
  expect((await read(2)).status).toBe(404)
})

test('an artifact of another caller does not exist', async () => {
  const read = await artifactWith([{ kind: 'text', text: 'secret' }])
  expect((await read(0)).status).toBe(200)
  // The agent reports the tasks of other owners as missing.
  poet.on['tasks/get'] = () => {}
  expect((await read(0)).status).toBe(404)
  expect((await browser().fetch(`/console/artifacts/${poet.slug}/x/a1/0`)).status).toBe(401)
  delete poet.on['tasks/get']
})
