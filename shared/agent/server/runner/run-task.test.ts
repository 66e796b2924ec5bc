import { expect, test } from 'vitest'
import { z } from 'zod'
import { artifact, file, type Handler, type HandlerContext, type Output } from '../../author/define-agent.ts'
import { testAgent } from '../../testing.ts'

/** Runs one task with the handler until the task ends or pauses. */
async function resultOf(handle: Handler, message = 'go') {
  await using agent = await testAgent({ handle })
  const alice = agent.caller('alice')
  const task = await alice.sendAndWait(message)
  const after = await alice.sendAndWait('again')
  return { task, after }
}

const reason = (task: { status: { message?: { parts: unknown[] } } }) =>
  task.status.message?.parts[0] as { text?: string }
const text = (value: string) => ({ kind: 'text', text: value })

test.each<[string, Handler, object[]]>([
  ['a text', () => 'done', [text('done')]],
  ['a promise', async () => 'done', [text('done')]],
  ['data', () => ({ answer: 42 }), [{ kind: 'data', data: { answer: 42 } }]],
  [
    'a generator',
    function* () {
      yield 'a'
      yield 'b'
    },
    [text('ab')],
  ],
  [
    'a generator that returns',
    function* () {
      yield 'a'
      return 'b'
    } as Handler,
    [text('ab')],
  ],
  [
    'an async generator',
    async function* () {
      yield 'a'
      yield { b: 1 }
      yield 'c'
      yield 'd'
    },
    [text('a'), { kind: 'data', data: { b: 1 } }, text('cd')],
  ],
  [
    'dates, as JSON gives them',
    () => ({ at: new Date(0) }) as unknown as Output,
    [{ kind: 'data', data: { at: '1970-01-01T00:00:00.000Z' } }],
  ],
  [
    'an object without a prototype',
    () => Object.assign(Object.create(null), { a: 1 }) as Output,
    [{ kind: 'data', data: { a: 1 } }],
  ],
  [
    'NaN, functions and undefined inside',
    () => ({ n: Number.NaN, f: () => 1, u: undefined }) as unknown as Output,
    [{ kind: 'data', data: { n: null } }],
  ],
])(
  'a handler that returns or yields %s completes its task with the answer in `artifacts`',
  async (_name, handle, parts) => {
    const { task } = await resultOf(handle)
    expect(task.status.state).toBe('completed')
    expect(task.status).not.toHaveProperty('message')
    expect(task.artifacts).toMatchObject([{ artifact_id: expect.any(String), name: 'result', parts }])
  },
)

test.each<[string, Handler]>([
  ['nothing', () => {}],
  ['null', () => null],
  ['an empty generator', function* () {}],
])('a handler that returns %s completes its task without artifacts', async (_name, handle) => {
  const { task } = await resultOf(handle)
  expect(task).toMatchObject({ status: { state: 'completed' }, artifacts: [] })
})

test('files and artifacts follow the main artifact, in order', async () => {
  const { task } = await resultOf(function* () {
    yield 'main'
    yield file('a.csv', 'text/csv', 'x,y')
    yield artifact(
      'report',
      'words',
      { rows: 1 },
      file('b.bin', 'application/octet-stream', new Uint8Array([0, 255])),
    )
  })
  expect(task.artifacts.map(({ name, parts }) => [name, parts])).toMatchObject([
    ['result', [text('main')]],
    ['a.csv', [{ kind: 'file', file: { name: 'a.csv', mime_type: 'text/csv', bytes: 'eCx5' } }]],
    [
      'report',
      [
        text('words'),
        { kind: 'data', data: { rows: 1 } },
        { kind: 'file', file: { name: 'b.bin', mime_type: 'application/octet-stream', bytes: 'AP8=' } },
      ],
    ],
  ])
})

class Box {
  value = 1
}
const cycle: Record<string, unknown> = {}
cycle['self'] = cycle
let deep: object = {}
for (let i = 0; i < 100_000; i += 1) deep = { deep }
const bad =
  (value: unknown): Handler =>
  () =>
    value as Output

test.each<[string, Handler]>([
  ['a number', bad(7)],
  ['true', bad(true)],
  ['a BigInt', bad(7n)],
  ['a symbol', bad(Symbol('x'))],
  ['a function', bad(() => 'x')],
  ['an array of numbers', bad([1, 2])],
  ['a class instance', bad(new Box())],
  ['a Date', bad(new Date())],
  ['an Error', bad(new Error('x'))],
  ['bytes', bad(new Uint8Array([1, 2]))],
  ['a cycle', bad(cycle)],
  ['a BigInt in data', bad({ n: 1n })],
  ['data too deep to write', bad({ deep })],
  [
    'toJSON that throws',
    bad({
      toJSON() {
        throw new Error('no')
      },
    }),
  ],
  ['toJSON that gives nothing', bad({ toJSON: () => undefined })],
  ['toJSON that gives a text', bad({ toJSON: () => 'x' })],
  ['an artifact of a number', bad(artifact('x', 5 as unknown as string))],
  ['an artifact named by a number', bad(artifact(5 as unknown as string, 'x'))],
  [
    'a number yielded after a text',
    async function* () {
      yield 'text'
      yield 5 as unknown as Output
    },
  ],
])(
  'output that cannot be an artifact (%s) fails the task with code -32006, and the next task runs',
  async (_name, handle) => {
    let first = true
    const { task, after } = await resultOf((context) => {
      if (!first) return 'fine'
      first = false
      return handle(context)
    })
    expect(task).toMatchObject({ status: { state: 'failed' }, artifacts: [] })
    expect(task.status.message?.parts.at(-1)).toEqual({
      kind: 'data',
      data: { code: -32006, message: expect.any(String) },
    })
    expect(after.status.state).toBe('completed')
  },
)

test.each<[string, unknown, string]>([
  ['an error', new Error('The sky fell'), 'The sky fell'],
  ['a text', 'just a text', 'The agent failed.'],
  ['undefined', undefined, 'The agent failed.'],
  ['an error without words', new Error(''), 'The agent failed.'],
  [
    'an error of the system',
    Object.assign(new Error("ENOENT: open '/etc/secret'"), { code: 'ENOENT', syscall: 'open' }),
    'The agent failed.',
  ],
  [
    'an error of a library',
    Object.assign(new Error('at /home/x.ts'), { code: 'ERR_X' }),
    'The agent failed.',
  ],
])(
  'a handler that throws %s fails its task with the reason in `status.message` and in the history, without a stack',
  async (_name, thrown, expected) => {
    const { task } = await resultOf(() => {
      throw thrown
    })
    expect(task.status).toMatchObject({
      state: 'failed',
      message: { role: 'agent', parts: [text(expected)] },
    })
    expect(task.history.at(-1)).toMatchObject({ role: 'assistant', parts: [text(expected)] })
  },
)

test('100 MB of output or an endless number of small parts fails the task with the reason', async () => {
  const { task } = await resultOf(({ text: said }) => (said === 'again' ? 'fine' : 'x'.repeat(100_000_000)))
  expect(reason(task).text).toContain('ARTIFACT_MAX_BYTES')
  const pieces = await resultOf(function* ({ text: said }: HandlerContext) {
    if (said === 'again') return
    for (;;) yield artifact('x')
  })
  expect(pieces.task.status.state).toBe('failed')
  expect(pieces.after.status.state).toBe('completed')
})

test('ARTIFACT_MAX_BYTES limits the whole output of a task', async () => {
  await using agent = await testAgent(
    {
      handle: ({ text: said }) =>
        said.split(' ').map((size) => file('f', 'text/plain', 'x'.repeat(Number(size)))) as unknown as Output,
    },
    { env: { ARTIFACT_MAX_BYTES: '1000' } },
  )
  const alice = agent.caller('alice')
  expect((await alice.sendAndWait('700')).status.state).toBe('completed')
  expect((await alice.sendAndWait('400 400')).status.state).toBe('failed')
})

test('a handler that ignores its signal fails its task at the deadline without affecting other tasks', async () => {
  await using agent = await testAgent({
    deadlineMs: 200,
    handle: ({ text: said }) => (said === 'go' ? new Promise<never>(() => {}) : 'fine'),
  })
  const alice = agent.caller('alice')
  const task = await alice.send('go')
  expect((await alice.sendAndWait('other')).status.state).toBe('completed')
  expect(reason(await alice.wait(task.id)).text).toContain('deadline of 200 ms')
})

test('an endless generator of empty texts does not block other tasks and ends at its deadline', async () => {
  await using agent = await testAgent({
    deadlineMs: 300,
    *handle({ text: said }) {
      if (said !== 'go') return
      for (;;) yield ''
    },
  })
  const alice = agent.caller('alice')
  const task = await alice.send('go')
  expect((await alice.sendAndWait('other')).status.state).toBe('completed')
  expect((await alice.wait(task.id)).status.state).toBe('failed')
})

test('cancel aborts the signal, and later output or errors of the handler change nothing', async () => {
  const heard: string[] = []
  await using agent = await testAgent({
    async *handle({ text: said, signal }) {
      yield 'begun'
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
      heard.push(said)
      if (said === 'throw') throw new Error('late')
      yield 'late'
      return 'late too'
    },
  })
  const alice = agent.caller('alice')
  for (const said of ['yield', 'throw']) {
    const task = await alice.send(said)
    await alice.wait(task.id, { untilStates: ['working'] })
    const canceled = await alice.cancel(task.id)
    await expect.poll(() => heard.includes(said)).toBe(true)
    await expect.poll(() => agent.app.services.scheduler.active).toBe(0)
    expect(await alice.get(task.id)).toEqual(canceled)
    expect(canceled).toMatchObject({ status: { state: 'canceled' }, artifacts: [] })
  }
})

test('when cancel and finish race, exactly one wins, and the event numbers are contiguous', async () => {
  await using agent = await testAgent({
    handle: async ({ text: said }) => {
      for (let turn = 0; turn < Number(said); turn += 1) await new Promise((resolve) => setImmediate(resolve))
      return 'done'
    },
  })
  const alice = agent.caller('alice')
  const winners: Record<string, number> = {}
  for (let round = 0; round < 60; round += 1) {
    const task = await alice.send(`${round % 12}`)
    const canceled = await alice.cancel(task.id).then(
      () => true,
      ({ code }: { code: number }) => code !== -32002,
    )
    const { status, artifacts } = await alice.wait(task.id)
    expect(status.state).toBe(canceled ? 'canceled' : 'completed')
    expect(artifacts).toHaveLength(canceled ? 0 : 1)
    const events = await Array.fromAsync(alice.resubscribe(task.id, 0))
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, i) => i + 1))
    expect(events.filter((event) => event.kind === 'status-update' && event.final)).toHaveLength(1)
    winners[status.state] = (winners[status.state] ?? 0) + 1
  }
  expect(Object.values(winners).reduce((sum, count) => sum + count)).toBe(60)
})

test('a bid has a data part; {accept: true} continues the task, {accept: false} rejects it, and other answers are -32602', async () => {
  await using agent = await testAgent({
    handle: ({ bid, history }) =>
      history.length === 1 ? bid({ amount: '1.50', latencyMs: 10, note: 'cheap' }) : 'worked',
  })
  const alice = agent.caller('alice')
  const offered = await alice.sendAndWait('go')
  expect(offered.status).toMatchObject({ state: 'negotiation-bid-submitted' })
  expect(offered.status.message?.parts).toEqual([
    text('cheap'),
    { kind: 'data', data: { amount: '1.50', latency_ms: 10, note: 'cheap' } },
  ])
  const answer = (taskId: string, data: object) =>
    alice.send({ taskId, parts: [{ kind: 'data', data: data as Record<string, never> }] })
  for (const odd of [{}, { accept: 'yes' }, { accept: 1 }])
    await expect(answer(offered.id, odd)).rejects.toMatchObject({ code: -32602 })
  await answer(offered.id, { accept: true })
  expect((await alice.wait(offered.id)).status.state).toBe('completed')
  const second = await alice.sendAndWait('go')
  expect((await answer(second.id, { accept: false })).status).toMatchObject({
    state: 'rejected',
    message: { role: 'agent' },
  })
})

test('requireAuth pauses with the prompt, decline rejects with the reason, and requirePayment fails without a price', async () => {
  await using agent = await testAgent({
    handle: ({ text: said, requireAuth, decline, requirePayment, history }) => {
      if (history.length > 1) return 'back'
      if (said === 'auth') return requireAuth('log in', { url: 'https://x.example' })
      return said === 'decline' ? decline('not today') : requirePayment({ amount: '1', reason: 'fee' })
    },
  })
  const alice = agent.caller('alice')
  const auth = await alice.sendAndWait('auth')
  expect(auth.status).toMatchObject({
    state: 'auth-required',
    message: { parts: [text('log in'), { kind: 'data' }] },
  })
  await alice.send({ taskId: auth.id, text: 'done' })
  expect((await alice.wait(auth.id)).status.state).toBe('completed')
  expect((await alice.sendAndWait('decline')).status).toMatchObject({
    state: 'rejected',
    message: { parts: [text('not today')] },
  })
  expect((await alice.sendAndWait('pay')).status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: expect.stringContaining('payment') }] },
  })
})

test('text yielded before a question precedes the question', async () => {
  const { task } = await resultOf(async function* ({ ask }: HandlerContext) {
    yield 'so far'
    yield ask('which?')
    yield 'never'
  })
  expect(task.status.message?.parts).toEqual([text('so far'), text('which?')])
  expect(task.artifacts).toEqual([])
})

const adding = {
  id: 'add',
  name: 'Add',
  description: 'Adds',
  input: z.object({ a: z.number(), b: z.number().default(1) }),
}

test('input that does not match the schema of the skill rejects the task with the reason and does not run the handler', async () => {
  let runs = 0
  await using agent = await testAgent({
    skills: [adding],
    handle: ({ input }) => {
      runs += 1
      return { sum: (input as { a: number; b: number }).a + (input as { b: number }).b }
    },
  })
  const alice = agent.caller('alice')
  const rejected = await alice.sendAndWait({ parts: [{ kind: 'data', data: { a: 'two' } }] })
  expect(rejected.status.state).toBe('rejected')
  expect(reason(rejected).text).toContain('add: a:')
  expect((await alice.sendAndWait('only words')).status.state).toBe('rejected')
  expect(runs).toBe(0)
  const done = await alice.sendAndWait({
    parts: [
      { kind: 'data', data: { a: 2 } },
      { kind: 'data', data: { b: 3 } },
    ],
  })
  expect(done.artifacts[0]?.parts).toMatchObject([{ kind: 'data', data: { sum: 5 } }])
})

test('an answer to a question need not repeat the data or the skill of the first message', async () => {
  await using agent = await testAgent({
    skills: [adding, { id: 'other', name: 'Other', description: 'Else' }],
    handle: ({ ask, history, input, skillId, text: said }) =>
      history.length === 1 ? ask('sure?') : { input: input as never, skillId: skillId ?? 'none', said },
  })
  const alice = agent.caller('alice')
  const paused = await alice.sendAndWait({
    parts: [{ kind: 'data', data: { a: 2 } }],
    metadata: { skill_id: 'add' },
  })
  await alice.send({ text: 'yes', taskId: paused.id })
  expect((await alice.wait(paused.id)).artifacts[0]?.parts).toMatchObject([
    { kind: 'data', data: { input: { a: 2, b: 1 }, skillId: 'add', said: 'yes' } },
  ])
})

test('a handler sees text, data, files, references, the caller, and the newest 50 tasks of its context, oldest first', async () => {
  const seen: HandlerContext[] = []
  await using agent = await testAgent({
    handle: (context) => {
      seen.push(context)
      return `result of ${context.text}`
    },
  })
  const alice = agent.caller('did:parley:alice:agent:1')
  const first = await alice.sendAndWait('task 0')
  const contextId = first.context_id
  for (let i = 1; i <= 52; i += 1) await alice.sendAndWait({ text: `task ${i}`, contextId })
  await alice.sendAndWait({
    contextId,
    referenceTaskIds: [first.id],
    parts: [
      text('a'),
      text('b'),
      { kind: 'data', data: { x: 1, y: 1 } },
      { kind: 'data', data: { y: 2 } },
      { kind: 'file', file: { name: 'f.txt', mime_type: 'text/plain', bytes: 'aGk=' } },
    ] as never,
  })
  const last = seen.at(-1) as HandlerContext
  expect(last).toMatchObject({
    text: 'a\nb',
    data: { x: 1, y: 2 },
    caller: { id: 'did:parley:alice:agent:1', did: 'did:parley:alice:agent:1' },
  })
  expect(last.files.map(({ name, mimeType, text: content }) => [name, mimeType, content])).toEqual([
    ['f.txt', 'text/plain', 'hi'],
  ])
  expect(last.references.map(({ id, state, text: content }) => [id, state, content])).toEqual([
    [first.id, 'completed', 'result of task 0'],
  ])
  expect(last.context.history.map(({ text: content }) => content)).toEqual(
    Array.from({ length: 50 }, (_, i) => `result of task ${i + 3}`),
  )
})

test('large parts are returned unchanged', async () => {
  const large = 'é'.repeat(400_000)
  const { task } = await resultOf(({ text: said }) => (said === 'again' ? said : said.toUpperCase()), large)
  expect(task.history[0]?.parts).toEqual([text(large)])
  expect(task.artifacts[0]?.parts).toMatchObject([text(large.toUpperCase())])
})
