import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { artifactOf, task, taskId, textPart } from '@parley/tools/testing/wire-samples'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const ids = ['a', 'b', 'c', 'd'].map((letter) => `${letter.repeat(8)}-1111-4111-8111-111111111111`) as [
  string,
  string,
  string,
  string,
]
const [first, second, third, fourth] = ids

type Node = Partial<Omit<WireTask, 'metadata'>> & { metadata?: unknown; text?: string }

/** A server whose agents hold these tasks, by agent and task. */
function server(tasks: Record<string, Node | number>) {
  return scriptedAgent({
    'tasks/get': ({ path, params }) => {
      const agent = path.split('/')[2] ?? '-'
      const id = String(params['task_id'])
      const found = tasks[`${agent}/${id}`]
      if (typeof found === 'number')
        return { error: { code: found, message: 'No', data: {} }, status: found === -32013 ? 403 : 404 }
      if (found === undefined) return { error: { code: -32001, message: 'Task not found' }, status: 404 }
      const { text, ...more } = found
      const message = { kind: 'message', role: 'user', parts: [{ kind: 'text', text }] }
      const status = { state: 'completed', timestamp: '2026-01-01T00:00:02.500000+00:00' }
      const result = {
        ...task('completed'),
        status,
        id,
        history: text === undefined ? [] : [message],
        ...more,
      }
      return { result, headers: { 'x-agent': 'planner' } }
    },
    'tasks/events': ({ params }) => ({
      result: {
        task_id: params['id'],
        events: [{ timestamp: '2026-01-01T00:00:00.000000+00:00' }],
        last_sequence: 1,
        more: false,
      },
    }),
  })
}

const childrenOf = (...links: [agent: unknown, id: unknown][]) => ({
  metadata: { children: links.map(([agent, id]) => ({ agent, task_id: id })) },
})
const withParent = (id: string, more: object = {}) => ({
  metadata: { parent: { agent: 'did:x', task_id: id }, ...more },
})

test('task prints the message of a task that was completed without artifacts', async () => {
  const message = { kind: 'message', role: 'agent', parts: [textPart('good morning')] }
  const status = { state: 'completed', timestamp: '2026-01-01T00:00:02.500000+00:00', message } as never
  await using agent = await server({ [`-/${taskId}`]: { artifacts: [], status } })
  expect(await runCli(['task', taskId, '--url', agent.url])).toEqual({
    code: 0,
    stdout: 'good morning\n',
    stderr: `· completed (task ${taskId})\n`,
  })
})

test('task prints the state and the answer', async () => {
  const artifacts = [artifactOf('a', 'result', textPart('42'))]
  await using agent = await server({ [`-/${taskId}`]: { artifacts } })
  expect(await runCli(['task', taskId, '--url', agent.url])).toEqual({
    code: 0,
    stdout: '42\n',
    stderr: `· completed (task ${taskId})\n`,
  })
})

test('task --json prints the task as received', async () => {
  await using agent = await server({ [`-/${taskId}`]: { text: 'go' } })
  const { stdout } = await runCli(['task', taskId, '--json', '--url', agent.url])
  expect(JSON.parse(stdout)).toMatchObject({ kind: 'task', id: taskId })
})

test('task --tree shows the agents, states, durations and requests of a chain', async () => {
  await using agent = await server({
    [`-/${first}`]: { text: 'Plan a trip', ...childrenOf(['booker', second], ['weather', fourth]) },
    [`booker/${second}`]: {
      text: 'Book\n a table',
      ...withParent(first, childrenOf(['payer', third]).metadata),
    },
    [`payer/${third}`]: {
      status: { state: 'failed', timestamp: '2026-01-01T00:03:05.000000+00:00' },
      ...withParent(second),
    },
    [`weather/${fourth}`]: -32013,
  })
  const { code, stdout } = await runCli(['task', first, '--tree', '--url', agent.url])
  expect(code).toBe(0)
  expect(stdout.split('\n')).toEqual([
    `planner  completed  2.5 s  "Plan a trip"  ${first}`,
    `├─ booker  completed  2.5 s  "Book a table"  ${second}`,
    `│  └─ payer  failed  3 min 5 s  ${third}`,
    `└─ weather  not shown  ${fourth}  (you may not read it)`,
    '',
  ])
})

test('task --tree --json prints the tree', async () => {
  await using agent = await server({
    [`-/${first}`]: { text: 'go', ...childrenOf(['booker', second]) },
    [`booker/${second}`]: { text: 'book', ...withParent(first) },
  })
  const { stdout } = await runCli(['task', first, '--tree', '--json', '--url', agent.url])
  expect(JSON.parse(stdout)).toEqual({
    agent: 'planner',
    taskId: first,
    state: 'completed',
    durationMs: 2500,
    request: 'go',
    children: [
      {
        agent: 'booker',
        taskId: second,
        state: 'completed',
        durationMs: 2500,
        request: 'book',
        children: [],
      },
    ],
  })
})

test('a cycle, a child that names another parent, and malformed links are shown as such', async () => {
  await using agent = await server({
    [`-/${first}`]: {
      ...childrenOf(['planner', second], ['../registry', third], ['\u001b[2J', third], ['x', 'y'], ['z', 7]),
    },
    [`planner/${second}`]: { ...withParent(fourth, childrenOf(['planner', first]).metadata) },
  })
  const { stdout } = await runCli(['task', first, '--tree', '--url', agent.url])
  expect(stdout).toContain('(4 more calls that cannot be shown)')
  expect(stdout).toContain('(names another task as its parent)')
  expect(stdout).toContain(`planner  not shown  ${first}  (shown above)`)
  expect(agent.calls.map(({ path }) => path)).not.toContain(expect.stringContaining('registry'))
  expect(stdout).not.toContain('\u001b')
})

test('texts of agents cannot control the terminal', async () => {
  const hostile = '\u001b]0;owned\u0007\u001b[2J\u202egnp.exe'
  await using agent = await server({
    [`-/${first}`]: { text: hostile, ...childrenOf(['booker', second]) },
    [`booker/${second}`]: -32099,
  })
  const { stdout } = await runCli(['task', first, '--tree', '--url', agent.url])
  // oxlint-disable-next-line no-control-regex -- these characters must not appear
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/)
})

test('a tree of endless children and levels is cut', async () => {
  let number = 0
  const id = () => `${(number += 1).toString(16).padStart(8, '0')}-1111-4111-8111-111111111111`
  await using agent = await scriptedAgent({
    'tasks/get': ({ params }) => ({
      result: {
        ...task('completed'),
        id: params['task_id'],
        ...childrenOf(...Array.from({ length: 3 }, () => ['planner', id()] as [string, string])),
      },
    }),
  })
  const { code, stdout } = await runCli(['task', first, '--tree', '--url', agent.url])
  expect(code).toBe(0)
  expect(agent.calls.filter(({ method }) => method === 'tasks/get').length).toBeLessThanOrEqual(201)
  expect(stdout).toContain('more than')
})

test('task --cancel cancels the task and prints its state', async () => {
  await using agent = await scriptedAgent({ 'tasks/cancel': () => ({ result: task('canceled') }) })
  expect(await runCli(['task', taskId, '--cancel', '--agent', 'booker', '--url', agent.url])).toEqual({
    code: 0,
    stdout: '',
    stderr: `· canceled (task ${taskId})\n`,
  })
  expect(agent.calls.map(({ path, method, params }) => [path, method, params])).toEqual([
    ['/agents/booker/', 'tasks/cancel', { task_id: taskId }],
  ])
})

test('task --cancel of a task that has ended is reported with exit code 1', async () => {
  const error = { code: -32002, message: 'Task cannot be canceled: it has already ended' }
  await using agent = await scriptedAgent({ 'tasks/cancel': () => ({ error, status: 400 }) })
  expect(await runCli(['task', taskId, '--cancel', '--tree', '--url', agent.url])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'parley: Task cannot be canceled: it has already ended.\n',
  })
})

test('task --cancel --tree shows the chain after the tasks of other agents have ended', async () => {
  const state = (name: string) => ({ state: name, timestamp: '2026-01-01T00:00:02.500000+00:00' })
  const child: Node = { status: state('working') as never, ...withParent(first) }
  await using agent = await scriptedAgent({
    'tasks/cancel': () => {
      setTimeout(() => (child.status = state('canceled') as never), 100)
      return { result: task('canceled') }
    },
    'tasks/get': ({ path }) => ({
      result: path.includes('booker')
        ? { ...task('working'), id: second, ...child }
        : { ...task('canceled'), id: first, ...childrenOf(['booker', second]) },
    }),
    'tasks/events': ({ params }) => ({ result: { task_id: params['id'], events: [], last_sequence: 0 } }),
  })
  const { code, stdout } = await runCli(['task', first, '--cancel', '--tree', '--url', agent.url])
  expect(code).toBe(0)
  expect(stdout).toMatch(/canceled .*\n└─ booker  canceled /)
})

test('an unknown task is reported with exit code 1', async () => {
  await using agent = await server({})
  const { code, stderr } = await runCli(['task', first, '--tree', '--url', agent.url])
  expect(code).toBe(1)
  expect(stderr).toContain('not found')
})
