import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type ForeignAgent, type ForeignScript, startForeignAgent } from '../testing/foreign-agent.ts'
import type { Attempt } from './attempts.ts'

/** The credential with which the operator admits the agent. */
export const foreignCredential = `credential-${randomUUID()}`

/** A server on a loopback address to which no call of a foreign agent may go. */
export interface Trap extends AsyncDisposable {
  url: string
  /** Method and path of each request. */
  requests: string[]
}

export async function startTrap(): Promise<Trap> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url}`)
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}')
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.2', listening))
  return {
    url: `http://127.0.0.2:${(server.address() as AddressInfo).port}`,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

const taskOf = (state: string, more: object = {}) => ({
  id: 'task-1',
  contextId: 'context-1',
  status: { state: `TASK_STATE_${state}` },
  ...more,
})

function cardOf(name: string, interfaceUrl: string, more: object = {}): object {
  return {
    name,
    description: 'Greets people in their language',
    version: '1.0.0',
    supportedInterfaces: [{ url: interfaceUrl, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: {},
    skills: [{ id: 'greet', name: 'Greet', description: 'Greets people', tags: [] }],
    ...more,
  }
}

const bearer = {
  securitySchemes: { b: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
  securityRequirements: [{ schemes: { b: { list: [] } } }],
}

/** An agent of another vendor, which tries to make the relay call the trap. */
export async function startGreeter(trap: Trap): Promise<ForeignAgent> {
  const script: ForeignScript = ({ method, params }, reply) => {
    const text = JSON.stringify(params)
    if (method === 'SendMessage' && text.includes('redirect'))
      return void reply.response.writeHead(307, { location: `${trap.url}/redirected` }).end()
    if (method === 'SendMessage' && text.includes('wait')) return reply.result({ task: taskOf('WORKING') })
    if (method === 'GetTask') return reply.result(taskOf('WORKING'))
    const parts = [{ text: 'Hi' }, { url: `${trap.url}/file`, filename: 'file' }]
    return reply.result({ task: taskOf('COMPLETED', { artifacts: [{ artifactId: 'a', parts }] }) })
  }
  const agent = await startForeignAgent(script)
  agent.card = cardOf('greeter', `${agent.url}/rpc`, bearer)
  return agent
}

export interface ForeignParts {
  trap: Trap
  /** Sends a message of the caller to the agent and returns the task once it has ended. */
  send: (text: string) => Promise<{ state: string }>
  /** Registers the agent at an address and returns the HTTP status. */
  register: (url: string) => Promise<number>
}

/** Attempts of a foreign agent to reach the trap by its card and its answers. */
export async function tryTrap({ trap, send, register }: ForeignParts): Promise<Attempt[]> {
  const attempts: Attempt[] = []
  const add = async (attempt: string, run: () => Promise<{ status: number; isRefused: boolean }>) => {
    const before = trap.requests.length
    const { status, isRefused } = await run()
    const reached = trap.requests.slice(before).join()
    attempts.push({
      attempt: `foreign agent: ${attempt}`,
      status,
      answer: reached,
      refused: isRefused && reached === '',
    })
  }
  await add('a redirect of a call to a loopback address', async () => {
    const { state } = await send('redirect me')
    return { status: 0, isRefused: state === 'failed' }
  })
  await add('a file at a loopback address', async () => {
    const { state } = await send('hello')
    return { status: 0, isRefused: state === 'completed' }
  })
  const cards: [string, (own: string) => object][] = [
    ['an interface at a loopback address', () => cardOf('inside', `${trap.url}/rpc`)],
    [
      'a token endpoint at a loopback address',
      (own) =>
        cardOf('inside', `${own}/rpc`, {
          securitySchemes: {
            o: {
              oauth2SecurityScheme: {
                flows: { clientCredentials: { tokenUrl: `${trap.url}/token`, scopes: {} } },
              },
            },
          },
          securityRequirements: [{ schemes: { o: { list: [] } } }],
        }),
    ],
  ]
  for (const [name, card] of cards)
    await add(`a card with ${name}`, async () => {
      await using agent = await startForeignAgent((_request, reply) => reply.error(-32_603, 'no'))
      agent.card = card(agent.url)
      const status = await register(agent.url)
      return { status, isRefused: status >= 400 }
    })
  await add('a card that is a redirect to a loopback address', async () => {
    const server = createServer((_request, response) =>
      response.writeHead(302, { location: `${trap.url}/card` }).end(),
    )
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const status = await register(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    server.closeAllConnections()
    server.close()
    return { status, isRefused: status >= 400 }
  })
  return attempts
}

/** Finds the relay, which takes one of the ports after that of the gateway. Only the relay has this `/health`. */
export async function findRelay(port: number, count: number): Promise<string> {
  const until = Date.now() + 60_000
  while (Date.now() < until) {
    for (let offset = 1; offset < count; offset += 1) {
      const url = `http://127.0.0.1:${port + offset}`
      const health = await fetch(`${url}/health`)
        .then((response) => response.text())
        .catch(() => '')
      if (health === '{"status":"ok"}') return url
    }
    await wait(200)
  }
  throw new Error('the relay does not listen')
}
