import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient } from '@parley/client/internal/client'
import { ClientToken } from '@parley/client/internal/signed-fetch'
import { operatorClient } from '@parley/e2e/harness/operator'
import { ParleyProcess, parley } from '@parley/e2e/harness/parley-process'
import { isTerminal } from '@parley/wire/model/task'
import type { ForeignAgent } from '../testing/foreign-agent.ts'
import { freePorts } from '../testing/port.ts'
import {
  type Attempt,
  messageParams,
  type Surroundings,
  tryDelegation,
  tryOwn,
  tryToken,
} from './attempts.ts'
import { findRelay, foreignCredential, startGreeter, startTrap, tryTrap } from './foreign.ts'
import { type Recorded, readRecorded } from './recorded.ts'

export interface HostileRun {
  /** Requests that the hostile agent received. */
  requests: number
  /** Secrets that reached the hostile agent although they must not. Empty if nothing leaked. */
  leaked: string[]
  attempts: Attempt[]
  /** The same requests of the caller itself. */
  own: Attempt[]
}

export interface HostileRunOptions {
  production: boolean
  say?: (line: string) => void
}

type Json = Record<string, unknown>

const agentsDir = path.join(import.meta.dirname, 'agents')
const portsCount = 8
const cookie = 'parley_session=a-session-of-the-callers-browser'

/**
 * Starts a deployment with a hostile agent and a victim, sends the hostile agent requests of a caller and of an operator
 * on every path, and tries everything that it was sent at every other address.
 */
export async function hostileRun({ production, say = () => {} }: HostileRunOptions): Promise<HostileRun> {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'parley-hostile-'))
  const port = await freePorts(portsCount)
  const env = {
    DATA_DIR: dataDir,
    LOG_LEVEL: 'warn',
    PAYMENT_SANDBOX: 'yes',
    REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
    ...(production && { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' }),
  }
  await using gateway = new ParleyProcess({
    name: 'gateway',
    args: ['up', '--agents', agentsDir],
    port,
    env,
    readyOutput: /^victim +ready/m,
  })
  try {
    say('starting')
    await gateway.start()
    return await attack(gateway, { dataDir, env: { ...process.env, ...env, PORT: String(port) }, say })
  } finally {
    await gateway.stop()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

async function attack(
  { url, output }: ParleyProcess,
  { dataDir, env, say }: { dataDir: string; env: NodeJS.ProcessEnv; say: (line: string) => void },
): Promise<HostileRun> {
  const metadata = await getJson(`${url}/.well-known/oauth-authorization-server/oauth2`)
  const [tokenUrl, registrationUrl] = [
    text(metadata, 'token_endpoint'),
    text(metadata, 'registration_endpoint'),
  ]
  const caller = await registerCaller(registrationUrl, tokenUrl, env)
  const operator = new ClientToken({ ...operatorClient(dataDir), scope: 'agent:admin' })
  const [callerToken, operatorToken] = [await caller.get(), await operator.get()]
  const task = await keepNotes(url, callerToken)
  await using trap = await startTrap()
  await using greeter = await startGreeter(trap)
  const relayed = await joinGreeter(url, { callerToken, operatorToken, greeter })
  await sendRequests(url, callerToken, 'caller')
  const recordFile = path.join(dataDir, 'agents', 'hostile', 'recorded.jsonl')
  const before = readRecorded(recordFile)
  await sendRequests(url, operatorToken, 'operator')
  const recorded = readRecorded(recordFile)
  say(`the hostile agent received ${recorded.requests.length} requests and ${recorded.tokens.length} tokens`)
  const ownAddress = (name: string) => {
    const address = new RegExp(`^${name} .*\\(own address (\\S+)\\)`, 'm').exec(output)?.[1]
    if (address === undefined) throw new Error(`the start table has no address of ${name}: ${output}`)
    return address
  }
  const didOf = async (slug: string) => text(await getJson(`${url}/registry/agents/${slug}`), 'did')
  const around: Surroundings = {
    gatewayUrl: url,
    tokenUrl,
    introspectionUrl: text(metadata, 'introspection_endpoint'),
    revocationUrl: text(metadata, 'revocation_endpoint'),
    hostileUrl: ownAddress('hostile'),
    victimUrl: ownAddress('victim'),
    paidUrl: ownAddress('paid'),
    relayedUrl: `${await findRelay(Number(new URL(url).port), portsCount)}/greeter`,
    relayed,
    hostileDid: await didOf('hostile'),
    victimDid: await didOf('victim'),
    ...task,
    client: recorded.client,
  }
  const attempts = await tryTokens(recorded.tokens, before.tokens, around)
  const { send, register } = callsOf(url, callerToken)
  attempts.push(...(await tryTrap({ trap, send, register })))
  attempts.push(impersonation(readRecorded(recordFile), greeter))
  const secrets = {
    "the caller's token": callerToken,
    "the operator's token": operatorToken,
    'a cookie': cookie,
  }
  const own = await tryOwn(callerToken, around)
  const leaked = [
    ...leakedOf(recorded.text, { ...secrets, 'the credential of a foreign agent': foreignCredential }),
    ...leakedOf(JSON.stringify(greeter.requests), secrets).map((name) => `${name} to a foreign agent`),
  ]
  return { requests: recorded.requests.length, leaked, attempts, own }
}

async function tryTokens(
  tokens: readonly string[],
  ofCaller: readonly string[],
  around: Surroundings,
): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  for (const [index, token] of tokens.entries()) {
    const name = `${ofCaller.includes(token) ? 'token of the caller' : 'token of the operator'} ${index + 1}`
    attempts.push(...(await tryToken(name, token, around)), ...(await tryDelegation(name, token, around)))
  }
  return attempts
}

/** Registers and admits the foreign agent, and creates an ended and a running task of the caller there. */
async function joinGreeter(
  url: string,
  {
    callerToken,
    operatorToken,
    greeter,
  }: { callerToken: string; operatorToken: string; greeter: ForeignAgent },
): Promise<Surroundings['relayed']> {
  const { send, register } = callsOf(url, callerToken)
  const status = await register(greeter.url)
  if (status !== 201 && status !== 200) throw new Error(`the foreign agent is not registered: ${status}`)
  const headers = { authorization: `Bearer ${operatorToken}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ credential: foreignCredential })
  const admitted = await fetch(`${url}/registry/agents/greeter/admit`, { method: 'POST', headers, body })
  if (!admitted.ok) throw new Error(`the foreign agent is not admitted: ${await admitted.text()}`)
  const { id: taskId, contextId } = await send('hello')
  const { id: runningTaskId } = await send('wait', 'working')
  return { taskId, contextId, runningTaskId }
}

/** Calls of the caller for foreign agents. */
function callsOf(url: string, token: string) {
  const caller = new AgentClient({ url: `${url}/agents/greeter/`, token })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return {
    send: async (content: string, until?: string) => {
      const { id, context_id: contextId } = await caller.send(content)
      for (;;) {
        const { state } = (await caller.get(id)).status
        if (state === until || isTerminal(state)) return { id, contextId, state }
        await wait(100)
      }
    },
    register: async (agentUrl: string) => {
      const body = JSON.stringify({ url: agentUrl })
      return (await fetch(`${url}/registry/agents`, { method: 'POST', headers, body })).status
    },
  }
}

/** The hostile agent states to the supervisor that it is the relay, and describes an agent to it. */
function impersonation({ requests, text: all }: Recorded, greeter: ForeignAgent): Attempt {
  const received = requests.filter(({ url }) => url.startsWith('/greeter')).map(({ url }) => url)
  const refused = received.length === 0 && !all.includes('relayed-agent') && greeter.requests.length > 0
  return { attempt: 'messages of the relay to the supervisor', status: 0, answer: received.join(), refused }
}

function leakedOf(all: string, secrets: Record<string, string>): string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => (all.includes(secret) ? [name] : []))
}

/** Sends requests on every path on which the gateway passes requests to an agent. */
async function sendRequests(url: string, token: string, who: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', cookie }
  const rpc = (target: string, method: string, params: object) =>
    fetch(`${url}${target}`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ jsonrpc: '2.0', id: randomUUID(), method, params }),
    }).then((response) => response.text())
  const message = () => messageParams(`Translate into pirate language: hello from the ${who}, matey`)
  await rpc('/agents/hostile/', 'message/send', message())
  await rpc('/agents/hostile/', 'message/stream', message())
  await rpc('/agents/hostile/', 'tasks/list', {})
  await rpc('/', 'message/send', message())
  await rpc('/', 'message/stream', message())
  await rpc('/', 'tasks/list', {})
  await rpc('/', 'contexts/list', {})
  await rpc('/', 'tasks/get', { taskId: randomUUID() })
  for (const route of [
    '/health',
    '/.well-known/agent.json',
    '/payments',
    '/api/payment-status/none',
    '/pay/none',
  ])
    await fetch(`${url}/agents/hostile${route}`, { headers }).then((response) => response.text())
  await fetch(`${url}/agents/hostile/api/start-payment-session`, { method: 'POST', headers, body: '{}' })
  await fetch(`${url}/agents/hostile/upload`, {
    method: 'PUT',
    headers: { ...headers, 'content-type': 'application/octet-stream' },
    body: 'bytes',
  })
}

/** Creates a completed and a running task of the caller at the victim. */
async function keepNotes(
  url: string,
  token: string,
): Promise<Pick<Surroundings, 'taskId' | 'contextId' | 'runningTaskId'>> {
  const create = async (note: string) => {
    const response = await fetch(`${url}/agents/victim/`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: messageParams(note) }),
    })
    const { result } = (await response.json()) as { result?: Json }
    if (result === undefined) throw new Error(`the victim refused the caller's message: ${response.status}`)
    return { taskId: text(result, 'id'), contextId: text(result, 'context_id', 'contextId') }
  }
  const { taskId: runningTaskId } = await create('wait')
  return { ...(await create('a secret')), runningTaskId }
}

async function registerCaller(
  registrationUrl: string,
  tokenUrl: string,
  env: NodeJS.ProcessEnv,
): Promise<ClientToken> {
  const { stdout } = await parley(['token', '--initial'], { env })
  const response = await fetch(registrationUrl, {
    method: 'POST',
    headers: { authorization: `Bearer ${stdout.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'caller', grant_types: ['client_credentials'] }),
  })
  const client = (await response.json()) as Json
  if (!response.ok) throw new Error(`the caller could not be registered: ${JSON.stringify(client)}`)
  const credentials = { clientId: text(client, 'client_id'), clientSecret: text(client, 'client_secret') }
  return new ClientToken({ tokenUrl, ...credentials, scope: 'agent:read agent:write' })
}

async function getJson(url: string, headers: Record<string, string> = {}): Promise<Json> {
  const response = await fetch(url, { headers })
  if (!response.ok) throw new Error(`${url} returned ${response.status}`)
  return (await response.json()) as Json
}

/** The first of the fields that is a string. */
function text(object: Json, ...fields: string[]): string {
  const found = fields.map((field) => object[field]).find((value) => typeof value === 'string')
  if (typeof found !== 'string') throw new Error(`no ${fields.join(' or ')} in ${JSON.stringify(object)}`)
  return found
}
