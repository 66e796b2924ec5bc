import { hash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { type Deployment, startDeployment } from './deployment.ts'
import { type Answer, type Sent, send, textAt, valueAt } from './http.ts'
import { type Receiver, startReceiver } from './receiver.ts'
import type { Recorder } from './recorder.ts'
import { type Signer, signed, signerFrom, uuidOf } from './signing.ts'

export interface Client {
  clientId: string
  clientSecret: string
  token: string
}

type CallerName = 'signer' | 'operator' | 'developer'

const readAndWrite = 'agent:read agent:write'

/** The servers that the areas of the record send requests to, and the callers that they use. */
export interface World extends AsyncDisposable {
  deployment: Deployment
  receiver: Receiver
  callers: Record<CallerName, Client>
  /** The key of the caller `signer`, which uses its DID as client id. */
  signer: Signer
  /** The key of the external agent at the receiver. */
  external: Signer
  literals: [value: string, name: string][]
  /** Registers a client for an area and returns it with its token. */
  client(recorder: Recorder, name: string, scope?: string): Promise<Client>
}

export async function startWorld(checkout: string): Promise<World> {
  await using stack = new AsyncDisposableStack()
  const [external, signer] = [signerFrom(21, 'elsewhere'), signerFrom(22, 'recorder')]
  const receiver = stack.use(await startReceiver(external))
  const deployment = stack.use(await startDeployment(checkout, receiver.port))
  const register = async (name: string, scope: string) => {
    const client = await registerClient(deployment, { client_name: name, scope })
    return withToken(deployment, client, scope)
  }
  const callers = {
    signer: await withToken(deployment, await registerSigner(deployment, signer), readAndWrite),
    operator: await withToken(deployment, deployment.operator, 'agent:admin'),
    developer: await withToken(deployment, deployment.developer, readAndWrite),
  }
  const literals: [string, string][] = [
    ...deployment.literals,
    ...Object.entries(callers).flatMap(([name, client]) => hidden(name, client)),
    [deployment.initialToken, 'initial access token'],
    [external.did, 'did of external'],
    [signer.did, 'did of signer'],
  ]
  const running = stack.move()
  return {
    deployment,
    receiver,
    callers,
    signer,
    external,
    literals,
    client: async (recorder, name, scope = readAndWrite) => {
      const client = await register(name, scope)
      for (const [value, shown] of hidden(name, client)) recorder.hide(value, shown)
      return client
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

function hidden(name: string, { clientId, clientSecret, token }: Client): [string, string][] {
  const basic = Buffer.from(`${clientId}:${clientSecret}`).toString('base64')
  return [
    [token, `token of ${name}`],
    [clientSecret, `secret of ${name}`],
    [basic, `credentials of ${name}`],
    ...(/^(did:|dev-|operator)/.test(clientId)
      ? []
      : [[clientId, `client ${name}`] satisfies [string, string]]),
  ]
}

type Registered = Omit<Client, 'token'>

export async function registerClient(
  { gateway, initialToken }: Deployment,
  metadata: object,
  headers: Record<string, string> = {},
): Promise<Registered> {
  const answer = await send({
    method: 'POST',
    url: `${gateway}/oauth2/register`,
    headers: { authorization: `Bearer ${initialToken}`, 'content-type': 'application/json', ...headers },
    body: { grant_types: ['client_credentials'], ...metadata },
  })
  return { clientId: textAt(answer, 'client_id'), clientSecret: textAt(answer, 'client_secret') }
}

function registerSigner(deployment: Deployment, signer: Signer): Promise<Registered> {
  const metadata = {
    grant_types: ['client_credentials'],
    client_name: 'signer',
    scope: 'agent:read agent:write',
    client_id: signer.did,
    public_key: signer.publicKey,
    issuer: `${deployment.gateway}/oauth2`,
  }
  return registerClient(deployment, metadata, signed(signer, { body: JSON.stringify(metadata) }))
}

async function withToken({ gateway }: Deployment, client: Registered, scope: string): Promise<Client> {
  const answer = await send(tokenRequest(gateway, client, { grant_type: 'client_credentials', scope }))
  return { ...client, token: textAt(answer, 'access_token') }
}

/** A form request to the token endpoint, or to another endpoint of the OAuth server. */
export function tokenRequest(
  gateway: string,
  { clientId, clientSecret }: Registered,
  form: Record<string, string>,
  path = 'token',
): Sent {
  const basic = [clientId, clientSecret].map((part) => encodeURIComponent(part)).join(':')
  return {
    method: 'POST',
    url: `${gateway}/oauth2/${path}`,
    headers: {
      authorization: `Basic ${Buffer.from(basic).toString('base64')}`,
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams(form).toString(),
  }
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

/** A JSON-RPC request from a caller. */
export function rpc(url: string, { token }: { token: string }, method: string, params?: unknown): Sent {
  const body = { jsonrpc: '2.0', id: 'r-1', method, ...(params !== undefined && { params }) }
  return { method: 'POST', url, headers: { ...bearer(token), 'content-type': 'application/json' }, body }
}

/** A generator of UUIDs that are the same in every run. */
export function ids(area: string): () => string {
  let count = 0
  return () => uuidOf(hash('sha256', `${area} ${++count}`, 'buffer'))
}

/** The parameters of `message/send` for one text. */
export function text(id: string, content: string, more: object = {}, configuration?: object) {
  const message = {
    role: 'user',
    kind: 'message',
    messageId: id,
    parts: [{ kind: 'text', text: content }],
    ...more,
  }
  return { message, ...(configuration !== undefined && { configuration }) }
}

const settledStates = new Set([
  'completed',
  'failed',
  'canceled',
  'rejected',
  'input-required',
  'auth-required',
  'payment-required',
  'negotiation-bid-submitted',
])
const settleLimitMs = 60_000

/** Waits until the task has ended or paused, without recording. */
export async function settled(url: string, caller: { token: string }, taskId: string): Promise<Answer> {
  return untilState(url, caller, taskId, (state) => settledStates.has(state))
}

export async function untilState(
  url: string,
  caller: { token: string },
  taskId: string,
  is: (state: string) => boolean,
): Promise<Answer> {
  const until = Date.now() + settleLimitMs
  for (;;) {
    const answer = await send(rpc(url, caller, 'tasks/get', { task_id: taskId }))
    const state = valueAt(answer, 'result', 'status', 'state')
    if (typeof state === 'string' && is(state)) return answer
    if (Date.now() > until)
      throw new Error(`task ${taskId} is ${String(state)}: ${answer.body.toString('utf8')}`)
    await wait(10)
  }
}
