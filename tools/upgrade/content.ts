import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ParleyProcess } from '@parley/e2e/harness/parley-process'
import { z } from 'zod'
import { type A2aBinding, A2aCaller, a2aBindings } from '../testing/a2a-caller.ts'
import { freePort } from '../testing/port.ts'

interface Client {
  id: string
  secret: string
  /** Manages the registration (RFC 7592). */
  management: { uri: string; token: string }
  token: string
  revoked: string
  tasks: { slug: string; id: string }[]
}

interface Options {
  dataDir: string
  /** The checkout of the earlier version, which also runs the external agent. */
  checkout: string
  folder: string
}

const clientFile = z.object({ client_id: z.string(), client_secret: z.string() })
const registered = clientFile.extend({
  registration_client_uri: z.string(),
  registration_access_token: z.string(),
})
const issued = z.object({ access_token: z.string() })
const sent = z.object({ result: z.object({ id: z.string() }) })
const session = z.object({ session_id: z.string() })

const clientsCount = 3
const commands = [
  'hello',
  'data',
  'file',
  'artifact',
  'several',
  'ask',
  'fail',
  'decline',
  'usage',
  'references',
]

/** Clients of a gateway with their tokens, tasks and sessions. */
export class Content implements AsyncDisposable {
  readonly #url: string
  readonly #dataDir: string
  readonly #clients: Client[] = []
  readonly #sessions: { client: Client; id: string }[] = []
  #hook = ''
  readonly #stack = new AsyncDisposableStack()

  private constructor(url: string, dataDir: string) {
    this.#url = url
    this.#dataDir = dataDir
  }

  static async create(url: string, { dataDir, checkout, folder }: Options): Promise<Content> {
    const content = new Content(url, dataDir)
    await content.#startReceiver()
    for (let n = 0; n < clientsCount; n += 1) content.#clients.push(await content.#register(`client ${n}`))
    await content.#startExternalAgent(checkout, folder)
    for (const client of content.#clients) await content.#fill(client)
    return content
  }

  get summary(): string {
    const tasks = this.#clients.flatMap((client) => client.tasks).length
    return `${this.#clients.length} clients, ${tasks} tasks, ${this.#sessions.length} payment sessions`
  }

  /** Secrets that the gateway stores. */
  get secrets(): string[] {
    const files = ['dev-client.json', 'oauth/operator-client.json'].map((name) => this.#clientIn(name).secret)
    return [...files, ...this.#clients.map(({ secret }) => secret)]
  }

  /** Reads everything with the credentials of the first version. */
  async read(): Promise<unknown> {
    const registry = await this.#registry()
    const clients = await Promise.all(this.#clients.map((client) => this.#readClient(client)))
    const files = [
      'dev-client.json',
      'oauth/operator-client.json',
      'oauth/sign-in-code',
      'oauth/initial-access-token',
    ]
    return {
      clients,
      registry,
      sessions: await Promise.all(
        this.#sessions.map(({ client, id }) =>
          this.#get(`/agents/paid/api/payment-status/${id}`, client.token),
        ),
      ),
      jwks: await this.#get('/oauth2/jwks'),
      files: files.map((name) => readFileSync(path.join(this.#dataDir, name), 'utf8')),
      identities: ['echo', 'paid', 'plain'].map((name) => {
        const file = path.join(this.#dataDir, 'agents', name, 'agent.key.json')
        return existsSync(file) ? readFileSync(file, 'utf8') : 'none'
      }),
    }
  }

  /** Checks that the stored secrets of all clients still obtain tokens that work. */
  async newTokenFaults(): Promise<string[]> {
    const faults: string[] = []
    for (const client of this.#clients) {
      const token = await this.#token(client, 'agent:read agent:write')
      const task = sent.safeParse(await this.#rpc('/agents/echo/', token, 'message/send', messageOf('again')))
      if (!task.success) faults.push(`${client.id} cannot send with a new token`)
    }
    return faults
  }

  /** Checks that clients of A2A read the tasks of the first version. */
  async a2aFaults(): Promise<string[]> {
    const faults: string[] = []
    for (const { token, id: client, tasks } of this.#clients) {
      const callerAt = (slug: string, binding: A2aBinding) =>
        new A2aCaller({ binding, url: `${this.#url}/agents/${slug}`, token: () => token, timeoutMs: 30_000 })
      // The external agent still runs the first version.
      const own = tasks.filter(({ slug }) => slug !== 'calculator')
      for (const [index, { slug, id }] of own.entries()) {
        const binding = a2aBindings[index % a2aBindings.length] ?? 'rest-1.0'
        const stored = sent.safeParse(
          await this.#rpc(`/agents/${slug}/`, token, 'tasks/get', { task_id: id }),
        )
        const task = await callerAt(slug, binding)
          .get(id)
          .catch((error: unknown) => String(error))
        const isSame = typeof task === 'object' && task.id === stored.data?.result.id
        if (!isSame) faults.push(`${binding}: task ${id} of ${slug}: ${JSON.stringify(task)}`)
      }
      const listed = await callerAt('echo', 'jsonrpc-1.0').list(100, '')
      const expected = own.filter(({ slug }) => slug === 'echo').length
      if (listed.totalSize !== expected) faults.push(`${client}: ListTasks has ${listed.totalSize} tasks`)
    }
    return faults
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stack.disposeAsync()
  }

  async #register(name: string): Promise<Client> {
    const initial = readFileSync(path.join(this.#dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
    const metadata = {
      client_name: name,
      grant_types: ['client_credentials'],
      response_types: [],
      redirect_uris: [],
    }
    const body = registered.parse(await this.#post('/oauth2/register', metadata, initial))
    const credentials = { id: body.client_id, secret: body.client_secret }
    const revoked = await this.#token(credentials, 'agent:read')
    await this.#form('/oauth2/revoke', { token: revoked }, credentials)
    return {
      ...credentials,
      management: { uri: body.registration_client_uri, token: body.registration_access_token },
      token: await this.#token(credentials, 'agent:read agent:write'),
      revoked,
      tasks: [],
    }
  }

  /** Starts a server that accepts every webhook. */
  async #startReceiver(): Promise<void> {
    const server = createServer((request, response) => {
      request.resume()
      response.end('{}')
    })
    this.#stack.defer(() => void server.close())
    const port = await freePort()
    await new Promise<void>((done) => server.listen(port, '127.0.0.1', done))
    this.#hook = `http://127.0.0.1:${port}/hook`
  }

  async #startExternalAgent(checkout: string, folder: string): Promise<void> {
    const port = await freePort()
    const initial = readFileSync(path.join(this.#dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
    const agent = new ParleyProcess({
      name: 'external agent',
      command: [process.execPath, path.join(checkout, 'cli', 'bin.mjs')],
      args: ['agent', path.join(checkout, 'agents', 'calculator'), '--port', String(port)],
      cwd: folder,
      port,
      env: {
        DATA_DIR: path.join(folder, 'external'),
        GATEWAY_URL: this.#url,
        OAUTH_INITIAL_TOKEN: initial,
        LOG_LEVEL: 'warn',
      },
    })
    this.#stack.use(agent)
    await agent.start()
    const operator = await this.#token(this.#clientIn('oauth/operator-client.json'), 'agent:admin')
    for (let attempt = 0; attempt < 100; attempt += 1) {
      const response = await fetch(`${this.#url}/registry/agents/calculator/admit`, {
        method: 'POST',
        headers: { authorization: `Bearer ${operator}`, 'content-type': 'application/json' },
        body: '{"own":true}',
      })
      if (response.ok) return
      await wait(100)
    }
    throw new Error('the external agent could not be admitted')
  }

  async #fill(client: Client): Promise<void> {
    for (const command of commands) await this.#send(client, 'echo', command)
    for (const [slug, text] of [
      ['plain', 'word'],
      ['calculator', '17 * 23'],
    ] as const)
      await this.#send(client, slug, text)
    await this.#untilEnded(client)
    for (const { slug, id } of client.tasks.slice(0, 3)) {
      await this.#rpc(`/agents/${slug}/`, client.token, 'tasks/feedback', {
        task_id: id,
        feedback: 'good',
        rating: 5,
      })
    }
    const [, , , , , paused] = client.tasks
    const config = { id: randomUUID(), url: this.#hook, token: 'webhook-token' }
    const params = { id: paused?.id, push_notification_config: config, long_running: true }
    await this.#rpc('/agents/echo/', client.token, 'tasks/pushNotificationConfig/set', params)
    const started = await this.#post('/agents/paid/api/start-payment-session', {}, client.token)
    this.#sessions.push({ client, id: session.parse(started).session_id })
  }

  async #send(client: Client, slug: string, text: string): Promise<void> {
    const { result } = sent.parse(
      await this.#rpc(`/agents/${slug}/`, client.token, 'message/send', messageOf(text)),
    )
    client.tasks.push({ slug, id: result.id })
  }

  async #untilEnded(client: Client): Promise<void> {
    for (let attempt = 0; attempt < 200; attempt += 1) {
      const tasks = await Promise.all(
        client.tasks.map(({ slug, id }) =>
          this.#rpc(`/agents/${slug}/`, client.token, 'tasks/get', { task_id: id }),
        ),
      )
      if (!/"state":"(submitted|working)"/.test(JSON.stringify(tasks))) return
      await wait(100)
    }
    throw new Error('the tasks did not end in time')
  }

  async #readClient(client: Client): Promise<unknown> {
    const { id, secret, token, revoked, management } = client
    const call = (slug: string, method: string, params: object) =>
      this.#rpc(slug === '' ? '/' : `/agents/${slug}/`, token, method, params)
    return {
      id,
      metadata: await this.#get(new URL(management.uri).pathname, management.token),
      tokens: await Promise.all(
        [token, revoked].map((one) => this.#form('/oauth2/introspect', { token: one }, { id, secret })),
      ),
      listed: await call('', 'tasks/list', { length: 100 }),
      contexts: await call('', 'contexts/list', { length: 100 }),
      tasks: await Promise.all(
        client.tasks.map((task) => call(task.slug, 'tasks/get', { task_id: task.id })),
      ),
      configs: await Promise.all(
        client.tasks
          .filter(({ slug }) => slug === 'echo')
          .map((task) => call('echo', 'tasks/pushNotificationConfig/list', { id: task.id })),
      ),
    }
  }

  /** Returns the agents when all of them are ready. */
  async #registry(): Promise<unknown> {
    for (let attempt = 0; ; attempt += 1) {
      const list = await this.#get('/registry/agents')
      const slugs = ['calculator', 'echo', 'paid', 'plain', 'strict']
      const ready = JSON.stringify(list).match(/"status":"ready"/g) ?? []
      if (ready.length === slugs.length || attempt === 300)
        return {
          list,
          details: await Promise.all(slugs.map((slug) => this.#get(`/registry/agents/${slug}`))),
        }
      await wait(100)
    }
  }

  #clientIn(name: string): { id: string; secret: string } {
    const file = clientFile.parse(JSON.parse(readFileSync(path.join(this.#dataDir, name), 'utf8')))
    return { id: file.client_id, secret: file.client_secret }
  }

  async #token(client: { id: string; secret: string }, scope: string): Promise<string> {
    return issued.parse(
      await this.#form('/oauth2/token', { grant_type: 'client_credentials', scope }, client),
    ).access_token
  }

  #form(
    to: string,
    form: Record<string, string>,
    { id, secret }: { id: string; secret: string },
  ): Promise<unknown> {
    const credentials = [id, secret].map(encodeURIComponent).join(':')
    const authorization = `Basic ${Buffer.from(credentials).toString('base64')}`
    return this.#fetch(to, { method: 'POST', headers: { authorization }, body: new URLSearchParams(form) })
  }

  #rpc(to: string, token: string, method: string, params: object): Promise<unknown> {
    return this.#post(to, { jsonrpc: '2.0', id: '1', method, params }, token)
  }

  #post(to: string, body: object, token: string): Promise<unknown> {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    return this.#fetch(to, { method: 'POST', headers, body: JSON.stringify(body) })
  }

  #get(from: string, token?: string): Promise<unknown> {
    return this.#fetch(from, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } })
  }

  /** Returns the parsed body, or the status and text of a response that is not JSON. */
  async #fetch(to: string, init: RequestInit): Promise<unknown> {
    const response = await fetch(`${this.#url}${to}`, init)
    const text = await response.text()
    try {
      return JSON.parse(text)
    } catch {
      return `${response.status} ${text}`
    }
  }
}

function messageOf(text: string) {
  const message = { role: 'user', kind: 'message', messageId: randomUUID(), parts: [{ kind: 'text', text }] }
  return { message: { ...message, contextId: randomUUID(), taskId: randomUUID() } }
}
