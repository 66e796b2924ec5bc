import path from 'node:path'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { AgentClient, type WireTask } from '@parley/client/internal/client'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

// The deployment uses an OAuth server without token exchange, so its agents receive statements.
let provider: TestIdentityProvider
let deployment: Deployment

test.beforeAll(async ({ backends }) => {
  provider = await TestIdentityProvider.start()
  provider.metadata = { token_endpoint: `${provider.url}/token`, introspection_endpoint: provider.url }
  provider.onTokenRequest = (form) => {
    const clientId = form.get('client_id') ?? ''
    const body = { access_token: provider.issue(clientId), token_type: 'Bearer', expires_in: 3600 }
    return { status: 200, body }
  }
  const clients = ['first', 'middle', 'last'].flatMap((name) => [
    [`${name.toUpperCase()}_OAUTH_CLIENT_ID`, `client of ${name}`],
    [`${name.toUpperCase()}_OAUTH_CLIENT_SECRET`, `secret of ${name}`],
  ])
  const settings = {
    OAUTH_ISSUER: provider.url,
    OAUTH_CLIENT_ID: 'gateway',
    OAUTH_CLIENT_SECRET: 'secret of the gateway',
    ...Object.fromEntries(clients),
  }
  deployment = await Deployment.start(backends, settings, path.join(import.meta.dirname, 'agents', 'chain'))
})
test.afterAll(async () => {
  await deployment?.remove()
  await provider?.[Symbol.asyncDispose]()
})

/** Node of `parley task --tree --json`. */
interface Node {
  taskId: string
  state?: string
  children: Node[]
}

const clientAt = (slug: string, token: string) =>
  new AgentClient({ url: `${deployment.url}/agents/${slug}`, token })
const reasonOf = ({ status }: WireTask) =>
  status.message?.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join()

async function treeOf(taskId: string, token: string): Promise<Node> {
  const options = ['--agent', 'first', '--tree', '--json', '--token', token, '--url', deployment.url]
  const { stdout, stderr, code } = await deployment.parley('task', taskId, ...options)
  expect([stderr, code]).toEqual(['', 0])
  return JSON.parse(stdout) as Node
}

const statesOf = ({ state, children }: Node): (string | undefined)[] => [state, ...children.flatMap(statesOf)]

/** Sends a message to the first agent, and waits until the last one works for it. */
async function startChain(token: string, text: string): Promise<{ task: WireTask; tree: Node }> {
  const task = await clientAt('first', token).send(text)
  let tree: Node | undefined
  await expect(async () => {
    tree = await treeOf(task.id, token)
    expect(tree.children[0]?.children[0]?.state).toBe('working')
  }).toPass()
  if (tree === undefined) throw new Error('no tree')
  return { task, tree }
}

test('each agent of a chain sees its caller and the client, and the client reads the tree', async () => {
  const token = provider.issue('alice')
  const alice = clientAt('first', token)
  const task = await alice.wait((await alice.send('10')).id)
  const text = task.artifacts.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])),
  )
  expect(text.join()).toMatch(/middle: last\(10\) for alice by client of middle, last\(0\) for alice/)
  expect(statesOf(await treeOf(task.id, token))).toEqual(['completed', 'completed', 'completed', 'completed'])
})

test('the cancellation of the first task cancels the whole chain', async () => {
  const token = provider.issue('alice')
  const { task } = await startChain(token, '600000')
  await clientAt('first', token).cancel(task.id)
  await expect(async () => {
    expect(statesOf(await treeOf(task.id, token))).toEqual(['canceled', 'canceled', 'canceled'])
  }).toPass()
})

test('the deadline of the first task ends the whole chain', async () => {
  const token = provider.issue('alice')
  const task = await clientAt('first', token).send('600000', { deadline_ms: 5000 })
  await expect(async () => {
    const states = statesOf(await treeOf(task.id, token))
    expect(states).toHaveLength(3)
    for (const state of states) expect(state).toMatch(/^(failed|canceled)$/)
  }).toPass()
})

test('a token that is revoked in the middle ends the chain at the next call, with a clear reason', async () => {
  const token = provider.issue('alice')
  const { task, tree } = await startChain(token, '8000')
  provider.revoke(token)
  const fresh = provider.issue('alice')
  const first = await clientAt('first', fresh).wait(task.id, { signal: AbortSignal.timeout(60_000) })
  expect(first.status.state).toBe('failed')
  await expect(async () => {
    const middle = await clientAt('middle', fresh).get(tree.children[0]?.taskId ?? '')
    expect(middle.status.state).toBe('failed')
    expect(reasonOf(middle)).toContain(
      'This agent may no longer call other agents for the client of this task',
    )
  }).toPass()
})
