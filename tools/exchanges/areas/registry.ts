import { send, textAt } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { signed } from '../signing.ts'
import { bearer, type Client, ids, rpc, text, type World } from '../world.ts'

/** Loads and measurements change. */
const figures = [
  'queue_depth',
  'active_tasks',
  'latency_p50_ms',
  'latency_p95_ms',
  'completed',
  'failed',
  'samples',
  'completed_tasks',
  'success_share',
]

const body = (json: string) => json.replace(/"measurements":\{[^}]*\}/g, '"measurements":null')

/** The registry: lists, entries, registration, heartbeats, decisions of the operator, signatures. */
export async function registry(recorder: Recorder, world: World): Promise<void> {
  const { gateway } = world.deployment
  const owner = await world.client(recorder, 'owner')
  await lists(recorder, gateway)
  await registrations(recorder, world, owner)
  const id = await registered(recorder, world, owner)
  await heartbeats(recorder, world, id, owner)
  await decisions(recorder, world, id, owner)
  await forwarded(recorder, world)
  await claims(recorder, world, id, owner)
  await leaving(recorder, world, id, owner)
}

async function lists(recorder: Recorder, gateway: string): Promise<void> {
  const get = (query: string) =>
    recorder.exchange(
      `GET /registry/agents${query}`,
      { url: `${gateway}/registry/agents${query}` },
      { figures, body },
    )
  await get('')
  await get('?q=weather')
  await get('?skill=echo')
  await get('?tag=count')
  await get('?status=ready')
  await get('?status=unreachable')
  await get('?status=left')
  await get('?status=odd')
  await get('?limit=2')
  await get('?limit=0')
  await get('?limit=2&cursor=cGFpZA')
  await get('?cursor=odd')
  await get('?limit=many')
  for (const slug of ['echo', 'paid', 'nobody']) {
    await recorder.exchange(
      `GET /registry/agents/${slug}`,
      { url: `${gateway}/registry/agents/${slug}` },
      { figures, body },
    )
  }
}

interface Registering {
  title: string
  url: unknown
  headers?: Record<string, string>
}

async function registrations(recorder: Recorder, world: World, owner: Client): Promise<void> {
  const { gateway, agents } = world.deployment
  const reader = await world.client(recorder, 'reader', 'agent:read')
  const register = ({ title, url, headers = bearer(owner.token) }: Registering) =>
    recorder.exchange(
      title,
      {
        method: 'POST',
        url: `${gateway}/registry/agents`,
        headers: { ...headers, 'content-type': 'application/json' },
        body: url === undefined ? {} : { url },
      },
      { figures, body },
    )
  const { url } = world.receiver
  await register({ title: 'registration without a token', url: `${url}/agent`, headers: {} })
  await register({
    title: 'registration with agent:read alone',
    url: `${url}/agent`,
    headers: bearer(reader.token),
  })
  await register({ title: 'registration without an address', url: undefined })
  await register({ title: 'registration of an address that is not a string', url: 7 })
  await register({ title: 'registration of an address that is not a URL', url: 'agent' })
  await register({ title: 'registration of another scheme', url: 'ftp://agent.example' })
  await register({ title: 'registration of an address with a password', url: 'http://a:b@127.0.0.1:1/' })
  await register({ title: 'registration of a private address', url: 'http://10.0.0.1/' })
  await register({ title: 'registration of the gateway', url: gateway })
  await register({ title: 'registration of a URL that is not an agent', url: `${url}/no-card` })
  await register({ title: 'registration of a URL that answers 404', url: `${url}/missing` })
  await register({ title: 'registration of a supervised agent', url: agents['echo'] })
}

/** Registers the external agent. @returns the id of its entry */
async function registered(recorder: Recorder, world: World, owner: Client): Promise<string> {
  const { gateway } = world.deployment
  const sent = {
    method: 'POST',
    url: `${gateway}/registry/agents`,
    headers: { ...bearer(owner.token), 'content-type': 'application/json' },
    body: { url: `${world.receiver.url}/agent` },
  }
  const entry = await recorder.exchange('registration', sent, { figures, body })
  await recorder.exchange('registration again', sent, { figures, body })
  const challenges = await world.receiver.received('/agent/did/challenge', 2)
  for (const [i, challenge] of challenges.slice(0, 2).entries()) {
    const first = `${challenge.method} ${challenge.url} HTTP/1.1`
    const shown = Buffer.from(challenge.body.toString('utf8').replace(/"nonce":"[^"]+"/, '"nonce":"<nonce>"'))
    const headers = challenge.headers.map((value) =>
      value === String(challenge.body.byteLength) ? String(shown.byteLength) : value,
    )
    recorder.note(`challenge ${i + 1} of the gateway`, recorder.message(first, headers, shown))
  }
  const fetched = await world.receiver.received('/agent/.well-known/agent.json', 1)
  const [card] = fetched
  if (card !== undefined)
    recorder.note(
      'request of the gateway for the card',
      recorder.message(`${card.method} ${card.url} HTTP/1.1`, card.headers, card.body),
    )
  const id = textAt(entry, 'id')
  await recorder.exchange(
    'entry that is not admitted',
    { url: `${gateway}/registry/agents/${id}` },
    { figures, body },
  )
  const other = { ...bearer(world.callers.developer.token), 'content-type': 'application/json' }
  await recorder.exchange('registration by another caller', { ...sent, headers: other }, { figures, body })
  return id
}

async function heartbeats(recorder: Recorder, world: World, id: string, owner: Client): Promise<void> {
  const { gateway } = world.deployment
  const beat = (
    title: string,
    content: unknown,
    to = id,
    headers: Record<string, string> = bearer(owner.token),
  ) =>
    recorder.exchange(title, {
      method: 'PUT',
      url: `${gateway}/registry/agents/${to}/heartbeat`,
      headers: { ...headers, 'content-type': 'application/json' },
      body: content,
    })
  await beat('heartbeat without figures', {})
  await beat('heartbeat with figures', {
    queue_depth: 1,
    active_tasks: 2,
    latency_p50_ms: 12.5,
    completed: 3,
    failed: 1,
  })
  await beat('heartbeat in camel case', { queueDepth: 0, activeTasks: 0 })
  await beat('heartbeat with a negative figure', { queue_depth: -1 })
  await beat('heartbeat with a figure that is a string', { queue_depth: 'few' })
  await beat('heartbeat with a malformed outcome', { outcomes: [{ task_id: 'one', state: 'completed' }] })
  await beat('heartbeat that is not JSON', '{')
  await beat('heartbeat of another caller', {}, id, bearer(world.callers.developer.token))
  await beat('heartbeat of a missing agent', {}, 'nobody')
  await beat('heartbeat without a token', {}, id, {})
}

async function decisions(recorder: Recorder, world: World, id: string, owner: Client): Promise<void> {
  const { gateway } = world.deployment
  const operator = bearer(world.callers.operator.token)
  const decide = (
    title: string,
    path: string,
    content?: unknown,
    headers: Record<string, string> = operator,
  ) =>
    recorder.exchange(
      title,
      {
        method: 'POST',
        url: `${gateway}/registry/agents/${path}`,
        headers: { ...headers, 'content-type': 'application/json' },
        body: content,
      },
      { figures, body },
    )
  await decide('admission by its owner', `${id}/admit`, {}, bearer(owner.token))
  await decide('admission without a token', `${id}/admit`, {}, {})
  await decide('admission of a missing agent', 'nobody/admit', {})
  await decide('admission of another revision', `${id}/admit`, { revision: 'x' })
  await decide('admission with a malformed body', `${id}/admit`, { own: 'perhaps' })
  await decide('admission', `${id}/admit`)
  await decide('quarantine', `${id}/quarantine`, { reason: 'to be looked at' })
  await decide('quarantine again', `${id}/quarantine`, {})
  await decide('quarantine with a reason of 600 characters', `${id}/quarantine`, { reason: 'r'.repeat(600) })
  const call = rpc(`${gateway}/agents/external`, owner, 'tasks/list', {})
  await recorder.exchange('a call to an agent in quarantine', call)
  await decide('release', `${id}/release`)
  await decide('release again', `${id}/release`)
  await decide('release of a missing agent', 'nobody/release')
}

/** The request that an external agent receives for a call through the gateway. */
async function forwarded(recorder: Recorder, world: World): Promise<void> {
  const { gateway } = world.deployment
  const [alice, id] = [await world.client(recorder, 'alice'), ids('forwarded')]
  const call = rpc(`${gateway}/agents/external`, alice, 'tasks/list', { limit: 1 })
  const headers = {
    ...call.headers,
    'x-secret': 'not for agents',
    cookie: 'a=b',
    'accept-language': 'de',
    'x-request-id': 'mine',
  }
  await recorder.exchange('a call to an external agent', { ...call, headers })
  await recorder.exchange('an unknown path of an external agent', {
    url: `${gateway}/agents/external/nothing?a=b`,
  })
  await recorder.exchange('card of an external agent', {
    url: `${gateway}/agents/external/.well-known/agent.json`,
  })
  await recorder.exchange(
    'a message to an external agent',
    rpc(`${gateway}/agents/external/`, alice, 'message/send', text(id(), 'juggle')),
  )
  const calls = [
    ...(await world.receiver.received('/agent/', 1)),
    ...(await world.receiver.received('/agent/nothing?a=b', 1)),
  ]
  for (const [i, { method, url, headers: got, body: bytes }] of calls.entries()) {
    recorder.note(
      `request received by the external agent ${i + 1}`,
      recorder.message(`${method} ${url} HTTP/1.1`, got, bytes),
    )
  }
}

async function claims(recorder: Recorder, world: World, id: string, owner: Client): Promise<void> {
  const { gateway } = world.deployment
  const claim = (
    title: string,
    hash: string,
    headers: Record<string, string> = bearer(owner.token),
    of = id,
  ) =>
    recorder.exchange(title, {
      method: 'PUT',
      url: `${gateway}/registry/agents/${of}/signatures/${hash}`,
      headers,
    })
  const hash = Buffer.alloc(32, 3).toString('base64url')
  await claim('claim of a signature', hash)
  await claim('claim of the same signature', hash)
  await claim('claim of a value that is not a hash', 'one')
  await claim('claim of another caller', hash, bearer(world.callers.developer.token))
  await claim('claim without a token', hash, {})
  await claim('claim of a missing agent', hash, bearer(owner.token), 'nobody')
}

async function leaving(recorder: Recorder, world: World, id: string, owner: Client): Promise<void> {
  const { gateway } = world.deployment
  const leave = (title: string, path: string, headers: Record<string, string> = bearer(owner.token)) =>
    recorder.exchange(title, { method: 'DELETE', url: `${gateway}/registry/agents/${path}`, headers })
  const operator = bearer(world.callers.operator.token)
  await leave('removal by another caller', id, bearer(world.callers.developer.token))
  await leave('removal without a token', id, {})
  await leave('removal of a missing agent', 'nobody')
  await leave('removal of a process with a malformed id', `${id}?replica_id=one`)
  const echo = textAt(await send({ url: `${gateway}/registry/agents/echo` }), 'id')
  await leave('removal of a supervised agent by the operator', echo, operator)
  await leave('removal by its owner', id)
  await leave('removal again', id)
  await recorder.exchange(
    'agents that left',
    { url: `${gateway}/registry/agents?status=left`, headers: operator },
    { figures, body },
  )
  await recorder.exchange('a call to an agent that left', { url: `${gateway}/agents/external/health` })
  await leave('removal by the operator', id, operator)
  const metadata = JSON.stringify({ url: `${world.receiver.url}/agent` })
  await recorder.exchange(
    'signed registration by another DID',
    {
      method: 'POST',
      url: `${gateway}/registry/agents`,
      headers: {
        ...bearer(world.callers.signer.token),
        'content-type': 'application/json',
        ...signed(world.signer, { body: metadata }),
      },
      body: metadata,
    },
    { figures, body },
  )
}
