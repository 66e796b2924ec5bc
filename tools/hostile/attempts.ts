import { randomUUID } from 'node:crypto'

/** What the hostile agent knows about the deployment. */
export interface Surroundings {
  gatewayUrl: string
  tokenUrl: string
  introspectionUrl: string
  revocationUrl: string
  /** Addresses of the agents' processes. */
  hostileUrl: string
  victimUrl: string
  paidUrl: string
  /** The address of a foreign agent at the relay. */
  relayedUrl: string
  /** Tasks of the caller at the foreign agent, as at the victim. */
  relayed: Pick<Surroundings, 'taskId' | 'contextId' | 'runningTaskId'>
  /** Their DIDs. */
  hostileDid: string
  victimDid: string
  /** A completed task and its context, and a running task of the caller at the victim. */
  taskId: string
  contextId: string
  runningTaskId: string
  /** The OAuth client of the hostile agent. */
  client: { clientId: string; clientSecret: string }
}

/** The outcome of one attempt. */
export interface Attempt {
  attempt: string
  status: number
  answer: string
  /** Whether the hostile agent gained nothing. */
  refused: boolean
}

interface Reply {
  status: number
  body: Record<string, unknown>
  text: string
}

const exchangeGrant = 'urn:ietf:params:oauth:grant-type:token-exchange'
const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const form = 'application/x-www-form-urlencoded'

async function send(url: string, init: RequestInit): Promise<Reply> {
  const response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(20_000) })
  const text = await response.text()
  const body = parsed(text)
  return { status: response.status, body, text }
}

function parsed(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

function rpc(url: string, token: string, method: string, params: object): Promise<Reply> {
  return send(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }),
  })
}

export const messageParams = (text: string, contextId: string = randomUUID()) => ({
  message: {
    role: 'user',
    kind: 'message',
    messageId: randomUUID(),
    contextId,
    taskId: randomUUID(),
    parts: [{ kind: 'text', text }],
  },
  configuration: { acceptedOutputModes: ['text/plain'] },
})

/** The JSON-RPC result contains none of the caller's objects. */
const isEmpty = ({ body }: Reply) => Array.isArray(body['result']) && body['result'].length === 0
const isError = ({ status, body }: Reply) => status >= 400 || 'error' in body
const isErrorOrEmpty = (reply: Reply) => isError(reply) || isEmpty(reply)

/** The methods of an agent that a caller's token gives access to, at any address that serves them. */
function agentAttempts(place: string, url: string, token: string, around: Surroundings): Try[] {
  const { taskId, contextId, runningTaskId } = around
  const call = (method: string, params: object) => () => rpc(url, token, method, params)
  const webhook = { id: randomUUID(), url: 'http://127.0.0.1:9/hook' }
  const note = 'Keep a note: forged'
  return [
    [`tasks/list ${place}`, call('tasks/list', {}), isErrorOrEmpty],
    [`tasks/get ${place}`, call('tasks/get', { taskId }), isError],
    [`tasks/events ${place}`, call('tasks/events', { taskId }), isError],
    [`tasks/feedback ${place}`, call('tasks/feedback', { taskId, feedback: 'bad', rating: 1 }), isError],
    [`contexts/list ${place}`, call('contexts/list', {}), isErrorOrEmpty],
    [`message/send ${place}`, call('message/send', messageParams(note)), isError],
    [`message/send in a context ${place}`, call('message/send', messageParams(note, contextId)), isError],
    [`message/stream ${place}`, call('message/stream', messageParams(note)), isError],
    [
      `tasks/pushNotificationConfig/set ${place}`,
      call('tasks/pushNotificationConfig/set', { id: runningTaskId, push_notification_config: webhook }),
      isError,
    ],
  ]
}

function paymentAttempts(place: string, url: string, token: string): Try[] {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const session = () => send(`${url}/api/start-payment-session`, { method: 'POST', headers, body: '{}' })
  return [
    [`payment session ${place}`, session, isError],
    [`payments ${place}`, () => send(`${url}/payments`, { headers }), isError],
  ]
}

/** Attempts that change the objects on which the others depend. */
function destructiveAttempts(place: string, url: string, token: string, around: Surroundings): Try[] {
  const { contextId, runningTaskId } = around
  const call = (method: string, params: object) => () => rpc(url, token, method, params)
  return [
    [`tasks/cancel ${place}`, call('tasks/cancel', { taskId: runningTaskId }), isError],
    [`contexts/clear ${place}`, call('contexts/clear', { contextId }), isError],
  ]
}

function everywhere(token: string, around: Surroundings): Try[] {
  const places = [
    ['at the victim', `${around.victimUrl}/`],
    ['at the victim through the gateway', `${around.gatewayUrl}/agents/victim/`],
    ['at the gateway', `${around.gatewayUrl}/`],
  ] as const
  const relayedPlaces = [
    ['at the relay', `${around.relayedUrl}/`],
    ['at the relayed agent through the gateway', `${around.gatewayUrl}/agents/greeter/`],
  ] as const
  const relayed = { ...around, ...around.relayed }
  return [
    ...places.flatMap(([place, url]) => agentAttempts(place, url, token, around)),
    ...relayedPlaces.flatMap(([place, url]) => agentAttempts(place, url, token, relayed)),
    ...relayAttempts(token, around),
    ...paymentAttempts('at the paid agent', around.paidUrl, token),
    ...paymentAttempts('at the paid agent through the gateway', `${around.gatewayUrl}/agents/paid`, token),
    ...gatewayAttempts(token, around),
    ...places.flatMap(([place, url]) => destructiveAttempts(place, url, token, around)),
    ...relayedPlaces.flatMap(([place, url]) => destructiveAttempts(place, url, token, relayed)),
  ]
}

/** Requests for what the relay has and serves to no caller. */
function relayAttempts(token: string, { relayedUrl, gatewayUrl, client }: Surroundings): Try[] {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const get = (url: string) => () => send(url, { headers })
  const agent = { type: 'relayed-agent', slug: 'greeter', agent: { url: 'http://127.0.0.1:9' } }
  return [
    [
      'messages of the supervisor to the relay',
      () => post(new URL('/', relayedUrl).href, headers, agent),
      isError,
    ],
    ['an unknown agent of the relay', get(new URL('/other/tasks', relayedUrl).href), isError],
    ['payments of the relayed agent', get(`${relayedUrl}/payments`), isError],
    [
      'a credential for the relayed agent',
      () => post(`${gatewayUrl}/registry/agents/greeter/admit`, headers, { credential: 'other' }),
      isError,
    ],
    [
      "a token for the relayed agent with the hostile agent's client",
      async () => {
        const authorization = basic(client)
        return post(
          `${relayedUrl}/`,
          { ...headers, authorization },
          { jsonrpc: '2.0', id: 1, method: 'tasks/list' },
        )
      },
      isError,
    ],
  ]
}

const post = (url: string, headers: Record<string, string>, body: object) =>
  send(url, { method: 'POST', headers, body: JSON.stringify(body) })

function gatewayAttempts(token: string, { gatewayUrl, victimDid }: Surroundings): Try[] {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const post = (path: string, body: object) => () =>
    send(`${gatewayUrl}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  const victim = `/registry/agents/${encodeURIComponent(victimDid)}`
  return [
    [
      "registration of an agent in the caller's name",
      post('/registry/agents', { url: 'http://127.0.0.1:9' }),
      // Any other error means that the gateway accepted the token.
      ({ status }) => status === 401 || status === 403,
    ],
    ['removal of the victim', () => send(`${gatewayUrl}${victim}`, { method: 'DELETE', headers }), isError],
    ['admission of an agent', post(`${victim}/admit`, {}), isError],
    ['quarantine of the victim', post(`${victim}/quarantine`, { reason: 'forged' }), isError],
    [
      'heartbeat in the name of the victim',
      () => send(`${gatewayUrl}${victim}/heartbeat`, { method: 'PUT', headers, body: '{}' }),
      isError,
    ],
  ]
}

/** Requests of the hostile agent's OAuth client for more than it was given. */
function exchangeAttempts(token: string, around: Surroundings): Try[] {
  const { tokenUrl, client, gatewayUrl } = around
  const exchange = (more: Record<string, string>) => () =>
    send(tokenUrl, {
      method: 'POST',
      headers: { 'content-type': form, authorization: basic(client) },
      body: exchangeForm(token, more),
    })
  return [
    ['exchange for the scope agent:admin', exchange({ resource: gatewayUrl, scope: 'agent:admin' }), isError],
    ['exchange without a resource', exchange({}), isError],
    [
      'exchange with itself as the actor token',
      exchange({ resource: gatewayUrl, actor_token: token }),
      isError,
    ],
  ]
}

const basic = ({ clientId, clientSecret }: Surroundings['client']) =>
  `Basic ${Buffer.from([clientId, clientSecret].map(encodeURIComponent).join(':')).toString('base64')}`

/** Tries a token that the hostile agent received at every other address. */
export function tryToken(name: string, token: string, around: Surroundings): Promise<Attempt[]> {
  return run(name, [...everywhere(token, around), ...exchangeAttempts(token, around)])
}

/**
 * Exchanges the token for the gateway, as an agent may do to call another agent for its caller, and tries to reach the
 * caller's other objects with the result.
 */
export async function tryDelegation(name: string, token: string, around: Surroundings): Promise<Attempt[]> {
  const { tokenUrl, client, gatewayUrl } = around
  const reply = await send(tokenUrl, {
    method: 'POST',
    headers: { 'content-type': form, authorization: basic(client) },
    body: exchangeForm(token, { resource: gatewayUrl }),
  })
  const delegated = reply.body['access_token']
  if (typeof delegated !== 'string')
    return [{ attempt: `${name}: delegation`, status: reply.status, answer: reply.text, refused: true }]
  // Delegation allows messages to other agents through the gateway.
  const isAllowed = ([attempt]: Try) =>
    /^(message\/(send|stream)|tasks\/list|contexts\/list) at the (gateway|victim through|relayed agent through)/.test(
      attempt,
    )
  return run(
    `${name}, delegated`,
    everywhere(delegated, around).filter((one) => !isAllowed(one)),
  )
}

/**
 * The same requests with the caller's own token, which has to be accepted. Otherwise a refusal of the others would show
 * nothing.
 */
export async function tryOwn(token: string, around: Surroundings): Promise<Attempt[]> {
  const place = 'at the victim through the gateway'
  const url = `${around.gatewayUrl}/agents/victim/`
  const relayed = [
    'at the relayed agent through the gateway',
    `${around.gatewayUrl}/agents/greeter/`,
    token,
    { ...around, ...around.relayed },
  ] as const
  const tries = [
    ...agentAttempts(place, url, token, around),
    ...agentAttempts(...relayed),
    ...destructiveAttempts(...relayed),
    ...paymentAttempts('at the paid agent through the gateway', `${around.gatewayUrl}/agents/paid`, token),
    ...destructiveAttempts(place, url, token, around),
  ]
  // Only an operator reads all payments.
  const isAllowed = ([attempt]: Try) => !attempt.startsWith('payments ')
  return run('own token', tries.filter(isAllowed))
}

function exchangeForm(token: string, more: Record<string, string>): string {
  const form = { grant_type: exchangeGrant, subject_token: token, subject_token_type: accessToken, ...more }
  return new URLSearchParams(form).toString()
}

type Try = readonly [string, () => Promise<Reply>, (reply: Reply) => boolean]

async function run(name: string, tries: readonly Try[]): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for (const [attempt, call, isRefused] of tries) {
    const reply = await call()
    const answer = reply.text.replaceAll(/\s+/g, ' ').slice(0, 160)
    attempts.push({ attempt: `${name}: ${attempt}`, status: reply.status, answer, refused: isRefused(reply) })
  }
  return attempts
}
