import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentClient, type WireTask } from '@parley/client/internal/client'
import { ClientToken } from '@parley/kit/auth/client-token'
import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'
import { readClient } from './harness/operator.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

let deployment: Deployment

test.beforeAll(async ({ backends }) => {
  deployment = await Deployment.start(backends, {}, path.join(import.meta.dirname, 'agents', 'chain'))
})
test.afterAll(async () => {
  await deployment?.remove()
})

/** Node of `parley task --tree --json`. */
interface Node {
  agent: string
  taskId: string
  state?: string
  request?: string
  note?: string
  children: Node[]
}

const developer = () => readClient(deployment.dataDir, 'dev-client.json')
const newToken = () => new ClientToken({ ...developer(), scope: 'agent:read agent:write' }).get()
const clientAt = (slug: string, token: string) =>
  new AgentClient({ url: `${deployment.url}/agents/${slug}`, token })

const textOf = ({ artifacts }: WireTask) =>
  artifacts.flatMap(({ parts }) => parts.flatMap((part) => (part.kind === 'text' ? [part.text] : []))).join()
const reasonOf = ({ status }: WireTask) =>
  status.message?.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join()

async function treeOf(taskId: string): Promise<Node> {
  const { stdout, stderr, code } = await deployment.parley(
    'task',
    taskId,
    '--agent',
    'first',
    '--tree',
    '--json',
  )
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return JSON.parse(stdout) as Node
}

/** Sends a message to the first agent, and waits until the last one works for it. */
async function startChain(token: string, text: string): Promise<{ task: WireTask; tree: Node }> {
  const task = await clientAt('first', token).send(text)
  let tree: Node | undefined
  await expect(async () => {
    tree = await treeOf(task.id)
    expect(tree.children[0]?.children[0]?.state).toBe('working')
  }).toPass()
  if (tree === undefined) throw new Error('no tree')
  return { task, tree }
}

async function revoke(token: string): Promise<void> {
  const { clientId, clientSecret, tokenUrl } = developer()
  const response = await fetch(tokenUrl.replace(/\/token$/, '/revoke'), {
    method: 'POST',
    body: new URLSearchParams({ token, client_id: clientId, client_secret: clientSecret }),
  })
  expect(response.status).toBe(200)
}

/** The processes of an agent, several with replicas. */
function processesOf(agent: string): number[] {
  const folder = path.join('agents', 'chain', agent)
  return deployment.processes().filter((pid) => {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    return command.includes(folder)
  })
}

test('each agent of a chain sees its caller and the client, and the client reads the tree', async () => {
  const alice = clientAt('first', await newToken())
  const task = await alice.wait((await alice.send('10')).id)
  const { clientId } = developer()
  expect(textOf(task)).toMatch(
    new RegExp(String.raw`^first: \d+ middle: last\(10\) for ${clientId} by did:parley:\S+, last\(0\) for`),
  )
  const tree = await treeOf(task.id)
  expect(tree).toMatchObject({
    agent: 'first',
    state: 'completed',
    request: '10',
    children: [
      {
        agent: 'middle',
        state: 'completed',
        children: [
          { agent: 'last', state: 'completed', request: '10' },
          { agent: 'last', state: 'completed', request: '0' },
        ],
      },
    ],
  })
  expect(JSON.stringify(tree)).not.toContain('note')
  const { stdout } = await deployment.parley('task', task.id, '--agent', 'first', '--tree')
  expect(stdout.split('\n').map((line) => line.slice(0, 12))).toEqual([
    expect.stringMatching(/^first/),
    expect.stringMatching(/^└─ middle/),
    expect.stringMatching(/^ {3}├─ last/),
    expect.stringMatching(/^ {3}└─ last/),
    '',
  ])
})

test('the cancellation of the first task cancels the whole chain', async () => {
  const token = await newToken()
  const { task } = await startChain(token, '600000')
  await clientAt('first', token).cancel(task.id)
  await expect(async () => {
    const tree = await treeOf(task.id)
    const [middle] = tree.children
    expect([tree.state, middle?.state, middle?.children[0]?.state]).toEqual([
      'canceled',
      'canceled',
      'canceled',
    ])
  }).toPass()
})

test('after kill -9 of the agent in the middle, it runs again and receives the same task of the last agent', async () => {
  const token = await newToken()
  const { task, tree } = await startChain(token, '8000')
  const [middle] = tree.children
  const killed = processesOf('middle')
  expect(killed.length).toBeGreaterThan(0)
  for (const pid of killed) process.kill(pid, 'SIGKILL')
  const ended = await clientAt('first', token).wait(task.id, { signal: AbortSignal.timeout(120_000) })
  expect(ended.status.state).toBe('completed')
  expect(textOf(ended)).toContain('last(8000)')
  const pid = Number(/^first: (\d+) /.exec(textOf(ended))?.[1])
  expect(killed).not.toContain(pid)
  const after = await treeOf(task.id)
  expect(after.children.map(({ taskId }) => taskId)).toEqual([middle?.taskId])
  expect(after.children[0]?.children.map(({ taskId, request }) => [taskId, request])).toEqual([
    [middle?.children[0]?.taskId, '8000'],
    [expect.any(String), '0'],
  ])
})

/** The tasks of the agent `last` by state. */
async function countTasks(): Promise<{ active: number; canceled: number }> {
  const metrics = await fetch(`${deployment.url}/agents/last/metrics`).then((response) => response.text())
  const sum = (pattern: RegExp) =>
    [...metrics.matchAll(pattern)].reduce((total, [, count]) => total + Number(count), 0)
  return {
    active: sum(/^agent_tasks_active\{.*\} (\d+)$/gm),
    canceled: sum(/^agent_tasks_completed_total\{.*state="canceled".*\} (\d+)$/gm),
  }
}

test('a task of the agent that the gateway chose is canceled, although its creator was killed before it learned of it', async () => {
  const token = await newToken()
  await expect(async () => expect((await countTasks()).active).toBe(0)).toPass()
  const before = await countTasks()
  const last = processesOf('last')
  for (const pid of last) process.kill(pid, 'SIGSTOP')
  const task = await clientAt('first', token).send('sleep deeply like a bear in winter, 600000 ms')
  // The gateway has sent the message to the frozen agent by then, also on a busy machine.
  await wait(4000)
  const killCreator = () => {
    for (const pid of processesOf('first')) process.kill(pid, 'SIGKILL')
  }
  killCreator()
  await expect(async () => {
    const canceled = await clientAt('first', token).cancel(task.id)
    expect(canceled.status.state).toBe('canceled')
  }).toPass()
  // Its successor, which has repeated the message, does not receive the response either.
  killCreator()
  for (const pid of last) process.kill(pid, 'SIGCONT')
  await expect(async () =>
    expect(await countTasks()).toEqual({ active: 0, canceled: before.canceled + 1 }),
  ).toPass()
  // The next test needs the creator, which is restarting.
  await expect(async () =>
    expect((await fetch(`${deployment.url}/agents/first/health`)).status).toBe(200),
  ).toPass()
})

test('a client that is revoked in the middle ends the chain at the next call, with a clear reason', async () => {
  const token = await newToken()
  const { task, tree } = await startChain(token, '12000')
  await revoke(token)
  const fresh = await newToken()
  const middle = tree.children[0]?.taskId ?? ''
  const first = await clientAt('first', fresh).wait(task.id, { signal: AbortSignal.timeout(60_000) })
  expect(first.status.state).toBe('failed')
  expect(reasonOf(first)).toMatch(/may no longer call other agents|Agent middle failed/)
  await expect(async () => {
    const ended = await clientAt('middle', fresh).get(middle)
    expect(ended.status.state).toBe('failed')
    expect(reasonOf(ended)).toContain(
      'This agent may no longer call other agents for the client of this task',
    )
  }).toPass()
})
