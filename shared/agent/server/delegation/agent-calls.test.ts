import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { verifyDocument } from '@parley/kit/did/document'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { CallResult } from '../../author/agents.ts'
import {
  AgentCallError,
  AgentFailedError,
  AgentNotFoundError,
  AgentUnavailableError,
  AuthorityEndedError,
  CallDeadlineError,
  CallLoopError,
  CallRefusedError,
  InputRequiredError,
  PaymentRequiredError,
} from '../../author/call-errors.ts'
import type { HandlerContext } from '../../author/context.ts'
import type { Handler } from '../../author/define-agent.ts'
import { file } from '../../author/output.ts'
import { type TestAgent, type TestAgentOptions, TestCaller, testAgent } from '../../testing.ts'
import { StubGateway } from './stub-gateway.cases.ts'

let gateway: StubGateway
beforeAll(async () => {
  gateway = await StubGateway.start()
})
afterAll(() => gateway[Symbol.asyncDispose]())
afterEach(() => {
  gateway.fault = 'none'
  gateway.onMessage = async () => {}
})

let names = 0
const client = () => `client-${(names += 1)}`

/** Starts an agent and adds it to the gateway. */
async function agentOf(
  slug: string,
  handle: Handler,
  options: TestAgentOptions & { streaming?: boolean } = {},
): Promise<TestAgent> {
  const { streaming = true, ...more } = options
  const capabilities = { streaming, pushNotifications: true }
  const agent = await testAgent(
    { name: slug, capabilities, handle },
    { store: 'memory', drainMs: 0, ...gateway.options(), ...more },
  )
  gateway.agents.set(slug, agent)
  return agent
}

/** A caller with a token that the gateway has exchanged for the agent. */
const callerOf = (agent: TestAgent, name: string, actors?: string[]) =>
  new TestCaller({ url: agent.url, token: gateway.tokenFor(agent, name, actors) })

const textOf = ({ artifacts }: WireTask) =>
  artifacts.flatMap(({ parts }) => parts.map((part) => 'text' in part && part.text)).join()
const reasonOf = ({ status }: WireTask) =>
  status.message?.parts.map((part) => 'text' in part && part.text).join()
const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

async function eventually(check: () => void | Promise<void>): Promise<void> {
  const end = Date.now() + 15_000
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > end) throw error
      await wait(50)
    }
  }
}

test('a call returns the text, data, files, task and state, and both tasks report each other', async () => {
  const seen: Partial<HandlerContext>[] = []
  const results: CallResult[] = []
  await using booker = await agentOf('booker', ({ caller, onBehalfOf, text, files, data }) => {
    seen.push({ caller, ...(onBehalfOf && { onBehalfOf }) })
    return {
      ...file('ticket.txt', 'text/plain', `${text} ${files[0]?.text} ${JSON.stringify(data)}`),
    }
  })
  await using planner = await agentOf('planner', async ({ agents }) => {
    const files = [file('a.txt', 'text/plain', 'inside')]
    results.push(await agents.call('booker', { text: 'book', data: { day: 'Friday' }, files }))
    return 'done'
  })
  const name = client()
  const alice = callerOf(planner, name)
  const task = await alice.sendAndWait('go')
  const [result] = results
  expect(result).toMatchObject({ agent: 'booker', state: 'completed' })
  expect(result?.files[0]?.text).toBe('book inside {"day":"Friday"}')
  expect(seen).toEqual([
    { caller: { id: planner.did, did: planner.did, signed: false }, onBehalfOf: { id: name } },
  ])
  expect(task.metadata).toEqual({ children: [{ agent: 'booker', task_id: result?.taskId }] })
  const child = await callerOf(booker, name).get(result?.taskId ?? '')
  expect(child.metadata).toEqual({
    parent: { agent: planner.did, task_id: task.id },
    root_task_id: task.id,
  })
})

test('in a chain of three agents, each task names the first one, and the client reads all of them', async () => {
  await using last = await agentOf('last', ({ caller, onBehalfOf }) => ({
    caller: caller.id,
    client: onBehalfOf?.id ?? '',
  }))
  await using middle = await agentOf('middle', async ({ agents }) => (await agents.call('last', 'go')).data)
  await using first = await agentOf('first', async ({ agents }) => (await agents.call('middle', 'go')).data)
  const name = client()
  const task = await callerOf(first, name).sendAndWait('go')
  expect(task.artifacts[0]?.parts).toMatchObject([{ data: { caller: middle.did, client: name } }])
  const inMiddle = await callerOf(middle, name).get(task.metadata?.children?.[0]?.task_id ?? '')
  const inLast = await callerOf(last, name).get(inMiddle.metadata?.children?.[0]?.task_id ?? '')
  expect(inLast.metadata).toEqual({
    parent: { agent: middle.did, task_id: inMiddle.id },
    root_task_id: task.id,
  })
})

test.each([true, false])(
  'a stream yields states, text and artifacts (callee streams: %s)',
  async (streaming) => {
    await using _writer = await agentOf(
      'writer',
      async function* () {
        yield 'one '
        await wait(50)
        yield 'two'
      },
      { streaming },
    )
    const kinds: string[] = []
    await using planner = await agentOf('planner', async function* ({ agents }) {
      for await (const event of agents.stream('writer', 'go')) {
        kinds.push(event.kind === 'state' ? event.state : event.kind)
        if (event.kind === 'artifact') yield event.text
      }
    })
    const task = await callerOf(planner, client()).sendAndWait('go')
    expect(textOf(task)).toBe('one two')
    expect(task.metadata?.children).toHaveLength(1)
    expect(kinds).toContain('artifact')
    const whileItRuns = kinds.filter((kind) => kind === 'delta' || kind === 'completed')
    expect(new Set(whileItRuns)).toEqual(new Set(streaming ? ['delta', 'completed'] : []))
  },
)

test.each([true, false])(
  'the message of an agent that answers without artifacts is the result of a call and an event of a stream (callee streams: %s)',
  async (streaming) => {
    await using _greeter = await agentOf('greeter', ({ reply }) => reply(['good morning', { at: 7 }]), {
      streaming,
    })
    const seen: object[] = []
    await using planner = await agentOf('planner', async ({ agents }) => {
      seen.push(await agents.call('greeter', 'hello'))
      for await (const event of agents.stream('greeter', 'hello'))
        if (event.kind === 'reply') seen.push(event)
    })
    await callerOf(planner, client()).sendAndWait('go')
    expect(seen).toMatchObject([
      { text: 'good morning', data: { at: 7 }, artifacts: [] },
      { kind: 'reply', text: 'good morning', parts: [{ kind: 'text' }, { kind: 'data', data: { at: 7 } }] },
    ])
  },
)

test('an agent that requires signatures receives requests that the calling agent signs', async () => {
  const signed: boolean[] = []
  await using strict = await testAgent(
    {
      name: 'strict',
      signatures: 'required',
      handle: ({ caller, text }) => {
        signed.push(caller.signed)
        return text
      },
    },
    { store: 'memory', ...gateway.options() },
  )
  gateway.agents.set('strict', strict)
  await using planner = await agentOf('planner', async ({ agents }) => {
    const answers = [await agents.call('strict', 'one'), await agents.call('strict', 'two')]
    return answers.map(({ text }) => text).join()
  })
  const { key } = await agentIdentityOf(planner)
  gateway.identityProvider.clients.set(planner.did, { public_key: key })
  const task = await callerOf(planner, client()).sendAndWait('go')
  expect(textOf(task)).toBe('one,two')
  expect(signed).toEqual([true, true])
})

/** Returns the agent's public key. */
async function agentIdentityOf(agent: TestAgent): Promise<{ key: string | undefined }> {
  const response = await fetch(`${agent.url}/did/resolve?did=${encodeURIComponent(agent.did)}`)
  return { key: verifyDocument(await response.json(), agent.did)[0] }
}

test('best records the agent that the gateway chose', async () => {
  gateway.best = 'chosen'
  await using _chosen = await agentOf('chosen', ({ text }) => text.toUpperCase())
  await using planner = await agentOf('planner', async ({ agents }) => {
    const { agent, text } = await agents.best('hello')
    return `${agent} ${text}`
  })
  const task = await callerOf(planner, client()).sendAndWait('go')
  expect(textOf(task)).toBe('chosen HELLO')
  expect(task.metadata?.children).toMatchObject([{ agent: 'chosen' }])
})

/** Runs one call in a handler, and returns its error and the task. */
async function failedCall(
  call: (context: HandlerContext) => Promise<unknown>,
  prepare?: (planner: TestAgent) => TestCaller,
): Promise<{ error: AgentCallError; task: WireTask }> {
  let error: unknown
  await using planner = await agentOf('planner', async (context) => {
    try {
      await call(context)
    } catch (thrown) {
      error = thrown
      throw thrown
    }
    return 'no error'
  })
  const caller = prepare?.(planner) ?? callerOf(planner, client())
  const task = await caller.sendAndWait('go')
  if (!(error instanceof AgentCallError)) throw new Error('no AgentCallError', { cause: error })
  return { error, task }
}

test('an agent that does not exist leads to AgentNotFoundError, and leaves no child', async () => {
  const { error, task } = await failedCall(({ agents }) => agents.call('absent', 'go'))
  expect(error).toBeInstanceOf(AgentNotFoundError)
  expect(task.status.state).toBe('failed')
  expect(reasonOf(task)).toContain('There is no agent "absent"')
  expect(task).not.toHaveProperty('metadata')
})

test.each(['../registry', 'A', '', 'a'.repeat(200), 'a/b', '\u001b[2J'])(
  '%j is not the name of an agent',
  async (name) => {
    const before = gateway.requests.length
    const { error } = await failedCall(({ agents }) => agents.call(name, 'go'))
    expect(error).toBeInstanceOf(CallRefusedError)
    expect(gateway.requests).toHaveLength(before)
  },
)

test('a refusal by a policy leads to CallRefusedError with its details', async () => {
  const error = {
    code: -32013,
    message: 'The policy of agent booker denies the call',
    data: { rule: 'deny 1' },
  }
  gateway.fault = { status: 403, body: { jsonrpc: '2.0', id: null, error } }
  const failed = await failedCall(({ agents }) => agents.call('booker', 'go'))
  expect(failed.error).toBeInstanceOf(CallRefusedError)
  expect(failed.error).toMatchObject({ rpcCode: -32013, data: { rule: 'deny 1' } })
  expect(reasonOf(failed.task)).toContain('denies the call')
})

test('an unpaid call leads to PaymentRequiredError with the requirements', async () => {
  gateway.fault = {
    status: 402,
    body: { x402Version: 2, error: 'payment_required', accepts: [{ amount: '1' }] },
  }
  const { error } = await failedCall(({ agents }) => agents.call('booker', 'go'))
  expect(error).toBeInstanceOf(PaymentRequiredError)
  expect(error).toMatchObject({ requirements: { accepts: [{ amount: '1' }] } })
})

test('an agent that stays unavailable leads to AgentUnavailableError', async () => {
  const error = { code: -32042, message: 'Agent is restarting', data: { reason: 'draining' } }
  gateway.fault = { status: 503, body: { jsonrpc: '2.0', id: null, error } }
  const failed = await failedCall(({ agents }) => agents.call('booker', 'go'))
  expect(failed.error).toBeInstanceOf(AgentUnavailableError)
}, 30_000)

test('an answer that is not a task leads to an error', async () => {
  gateway.fault = { status: 200, body: { jsonrpc: '2.0', id: 'x', result: { id: 7 } } }
  const failed = await failedCall(({ agents }) => agents.call('booker', 'go'))
  expect(failed.task.status.state).toBe('failed')
})

test('a question leads to InputRequiredError, and its reply continues the same task', async () => {
  await using _booker = await agentOf('booker', ({ text, ask, history }) =>
    history.length === 1 ? ask('Which day?', { days: 2 }) : `booked ${text}`,
  )
  await using planner = await agentOf('planner', async ({ agents }) => {
    const error = await agents.call('booker', 'a table').then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    if (!(error instanceof InputRequiredError)) throw new Error('no question')
    const { text, taskId } = await error.reply('Friday')
    return `${error.question} ${JSON.stringify(error.data)} ${text} ${taskId === error.taskId}`
  })
  const task = await callerOf(planner, client()).sendAndWait('go')
  expect(textOf(task)).toBe('Which day? {"days":2} booked Friday true')
  expect(task.metadata?.children).toHaveLength(1)
})

test('a question can be passed on, and the next message of the client continues the child', async () => {
  await using _booker = await agentOf('booker', ({ text, ask, history }) =>
    history.length === 1 ? ask('Which day?') : `booked ${text}`,
  )
  await using planner = await agentOf('planner', async ({ agents, ask, text }) => {
    const taskId = agents.children.at(-1)?.taskId
    try {
      return (await agents.call('booker', text, taskId === undefined ? {} : { taskId })).text
    } catch (error) {
      if (error instanceof InputRequiredError) return ask(error.question)
      throw error
    }
  })
  const alice = callerOf(planner, client())
  const asked = await alice.sendAndWait('a table')
  expect(reasonOf(asked)).toBe('Which day?')
  const task = await alice.sendAndWait({ text: 'Friday', taskId: asked.id })
  expect(textOf(task)).toBe('booked Friday')
  expect(task.metadata?.children).toHaveLength(1)
})

test.each([
  ['failed', () => Promise.reject(new Error('no seats')), 'Agent booker failed: no seats'],
  ['rejected', ({ decline }: HandlerContext) => decline('closed'), 'Agent booker rejected the task: closed'],
] as const)(
  'a task that is %s leads to AgentFailedError with the reason in its message',
  async (state, handle, text) => {
    await using _booker = await agentOf('booker', handle as Handler)
    const { error, task } = await failedCall(({ agents }) => agents.call('booker', 'go'))
    expect(error).toBeInstanceOf(AgentFailedError)
    expect(error).toMatchObject({ state })
    expect(reasonOf(task)).toBe(text)
  },
)

test('a revoked client ends the authority: the next call fails, and so does the task, with a clear reason', async () => {
  await using _booker = await agentOf('booker', () => 'booked')
  const revoke = Promise.withResolvers<void>()
  const first = Promise.withResolvers<void>()
  await using planner = await agentOf('planner', async ({ agents }) => {
    await agents.call('booker', 'one')
    first.resolve()
    await revoke.promise
    return (await agents.call('booker', 'two')).text
  })
  const alice = callerOf(planner, client())
  const { id } = await alice.send('go')
  await first.promise
  // All tokens of the client end together.
  for (const token of gateway.tokens) gateway.identityProvider.revoke(token)
  revoke.resolve()
  await eventually(async () => {
    const task = await planner.app.services.store.loadTask(id)
    expect(task?.status).toMatchObject({
      state: 'failed',
      message: { parts: [{ text: expect.stringMatching(/may no longer call other agents.*not active/) }] },
    })
  })
})

test('a token that does not name the agent is not kept, and a call says so', async () => {
  const { error } = await failedCall(
    ({ agents }) => agents.call('booker', 'go'),
    (planner) => planner.caller('direct'),
  )
  expect(error).toBeInstanceOf(AuthorityEndedError)
  expect(error.message).toContain('without a token')
})

test.each([
  ['already acts in the chain', (own: string) => ['did:x:b', own], CallLoopError],
  ['is the client itself', () => [], CallLoopError],
  ['is the sixth', () => ['did:1', 'did:2', 'did:3', 'did:4', 'did:5'], CallLoopError],
] as const)('an agent that %s calls no other agent', async (why, actors, kind) => {
  const before = gateway.requests.length
  const { error } = await failedCall(
    ({ agents }) => agents.call('booker', 'go'),
    (planner) =>
      callerOf(planner, why === 'is the client itself' ? planner.did : client(), [
        gateway.url,
        ...actors(planner.did),
      ]),
  )
  expect(error).toBeInstanceOf(kind)
  expect(gateway.requests).toHaveLength(before)
})

test('agents that call each other come to an end', async () => {
  await using _ping = await agentOf('ping', async ({ agents }) => (await agents.call('pong', 'go')).text)
  await using pong = await agentOf('pong', async ({ agents }) => (await agents.call('ping', 'go')).text)
  const task = await callerOf(pong, client()).sendAndWait('go')
  expect(reasonOf(task)).toContain('already acts for the client')
})

test('a task makes at most 100 calls', async () => {
  await using _booker = await agentOf('booker', () => 'x')
  const { error, task } = await failedCall(async ({ agents }) => {
    for (let n = 0; n < 101; n += 1) await agents.call('booker', `go ${n}`)
  })
  expect(error).toBeInstanceOf(CallLoopError)
  expect(task.metadata?.children).toHaveLength(100)
}, 60_000)

test('the remaining time is passed on, and the call fails when the agent does not finish in it', async () => {
  const deadlines: (number | undefined)[] = []
  await using booker = await agentOf('booker', async ({ signal, task }) => {
    deadlines.push((await booker.app.services.store.loadTask(task.id))?.deadlineAt)
    await untilAborted(signal)
  })
  const startedAt = Date.now()
  const { error, task } = await failedCall(({ agents }) => agents.call('booker', 'go', { deadlineMs: 300 }))
  expect(error).toBeInstanceOf(CallDeadlineError)
  expect(deadlines[0]).toBeGreaterThan(startedAt)
  expect(deadlines[0]).toBeLessThan(startedAt + 2000)
  const child = await callerOf(booker, 'x')
    .get(task.metadata?.children?.[0]?.task_id ?? '')
    .catch(() => undefined)
  expect(child).toBeUndefined()
})

test('the deadline of the client reaches the child, and the child is canceled when the parent fails', async () => {
  const left: (number | undefined)[] = []
  await using booker = await agentOf('booker', async ({ signal, task }) => {
    left.push((await booker.app.services.store.loadTask(task.id))?.deadlineAt)
    await untilAborted(signal)
  })
  await using planner = await agentOf('planner', async ({ agents }) => {
    await agents.call('booker', 'go')
  })
  const name = client()
  const startedAt = Date.now()
  const task = await callerOf(planner, name).sendAndWait('go', { deadline_ms: 500 })
  expect(reasonOf(task)).toContain('deadline that its caller set')
  expect(left[0]).toBeLessThanOrEqual(startedAt + 1500)
  const child = await callerOf(booker, name).wait(task.metadata?.children?.[0]?.task_id ?? '')
  expect(['failed', 'canceled']).toContain(child.status.state)
})

/** A chain of three agents, the last of which runs until it is aborted. */
async function waitingChain(options: { detach?: boolean } = {}) {
  await using stack = new AsyncDisposableStack()
  const started = Promise.withResolvers<void>()
  const last = stack.use(
    await agentOf('last', async ({ signal }) => {
      started.resolve()
      await untilAborted(signal)
    }),
  )
  const middle = stack.use(
    await agentOf('middle', async ({ agents }) => (await agents.call('last', 'go')).text),
  )
  const first = stack.use(
    await agentOf('first', async ({ agents }) => (await agents.call('middle', 'go', options)).text),
  )
  const name = client()
  const alice = callerOf(first, name)
  const task = await alice.send('go')
  await started.promise
  const open = stack.move()
  const stateAt = async (agent: TestAgent, id: string | undefined) =>
    (await callerOf(agent, name).get(id ?? '')).status.state
  const childOf = async (agent: TestAgent, id: string) =>
    (await callerOf(agent, name).get(id)).metadata?.children?.[0]?.task_id ?? ''
  return {
    first,
    middle,
    last,
    alice,
    task,
    stateAt,
    childOf,
    [Symbol.asyncDispose]: () => open.disposeAsync(),
  }
}

test('the cancellation of a task cancels its children and their children, and removes the authority', async () => {
  await using chain = await waitingChain()
  const { first, middle, last, alice, task, stateAt, childOf } = chain
  await alice.cancel(task.id)
  const inMiddle = await childOf(first, task.id)
  const inLast = await childOf(middle, inMiddle)
  await eventually(async () => {
    expect(await stateAt(middle, inMiddle)).toBe('canceled')
    expect(await stateAt(last, inLast)).toBe('canceled')
    for (const [agent, id] of [
      [first, task.id],
      [middle, inMiddle],
      [last, inLast],
    ] as const) {
      const record = await agent.app.services.store.loadTask(id)
      expect([record?.authority, record?.dueAt]).toEqual([undefined, undefined])
    }
  })
})

test('a detached child continues after the cancellation of its parent', async () => {
  await using chain = await waitingChain({ detach: true })
  const { first, middle, alice, task, stateAt, childOf } = chain
  await alice.cancel(task.id)
  await wait(1000)
  expect(await stateAt(middle, await childOf(first, task.id))).toBe('working')
})

test('a parent that fails or completes cancels children that still run', async () => {
  const started = { fail: Promise.withResolvers<void>(), complete: Promise.withResolvers<void>() }
  await using slow = await agentOf('slow', async ({ signal, text }) => {
    started[text as keyof typeof started].resolve()
    await untilAborted(signal)
  })
  await using planner = await agentOf('planner', async ({ agents, text }) => {
    void agents.call('slow', text)
    await started[text as keyof typeof started].promise
    if (text === 'fail') throw new Error('broken')
    return 'done'
  })
  for (const text of ['fail', 'complete']) {
    const name = client()
    const task = await callerOf(planner, name).sendAndWait(text)
    const child = task.metadata?.children?.[0]?.task_id ?? ''
    await eventually(async () => {
      expect((await callerOf(slow, name).get(child)).status.state).toBe('canceled')
    })
  }
})

test('the signal of a call cancels the child', async () => {
  await using slow = await agentOf('slow', ({ signal }) => untilAborted(signal))
  const abort = new AbortController()
  await using planner = await agentOf('planner', async ({ agents }) => {
    setTimeout(() => abort.abort(new Error('enough')), 300)
    await agents.call('slow', 'go', { signal: abort.signal })
  })
  const name = client()
  const task = await callerOf(planner, name).sendAndWait('go')
  expect(reasonOf(task)).toBe('enough')
  await eventually(async () => {
    expect((await callerOf(slow, name).get(task.metadata?.children?.[0]?.task_id ?? '')).status.state).toBe(
      'canceled',
    )
  })
})

/** The ways in which a handler creates a task at the agent `slow`. */
const ways: Record<string, Handler> = {
  call: async ({ agents }) => (await agents.call('slow', 'go')).text,
  best: async ({ agents }) => (await agents.best('go')).text,
  stream: async ({ agents }) => {
    for await (const _event of agents.stream('slow', 'go')) continue
  },
}

test.each(Object.keys(ways))(
  'a child of %s is canceled although the response to its message was lost',
  async (way) => {
    gateway.best = 'slow'
    const started = Promise.withResolvers<string>()
    await using slow = await agentOf('slow', async ({ signal, task }) => {
      started.resolve(task.id)
      await untilAborted(signal)
    })
    gateway.onMessage = (step) => (step === 'response' ? new Promise(() => {}) : Promise.resolve())
    await using planner = await agentOf('planner', ways[way] ?? (() => undefined))
    const name = client()
    const alice = callerOf(planner, name)
    const { id } = await alice.send('go')
    const child = await started.promise
    await alice.cancel(id)
    await eventually(async () => {
      expect((await callerOf(slow, name).get(child)).status.state).toBe('canceled')
      expect((await planner.app.services.store.loadTask(id))?.dueAt).toBeUndefined()
    })
  },
)

test.each(Object.keys(ways))(
  'a message of %s that arrives after its cancellation creates no task',
  async (way) => {
    gateway.best = 'slow'
    let runs = 0
    await using slow = await agentOf('slow', () => {
      runs += 1
    })
    const [onItsWay, arrive, arrived] = [0, 1, 2].map(() => Promise.withResolvers<void>())
    gateway.onMessage = async (step) => {
      if (step === 'response') return arrived?.resolve()
      onItsWay?.resolve()
      await arrive?.promise
    }
    await using planner = await agentOf('planner', ways[way] ?? (() => undefined))
    const name = client()
    const alice = callerOf(planner, name)
    const { id } = await alice.send('go')
    await onItsWay?.promise
    await alice.cancel(id)
    const { store } = planner.app.services
    await eventually(async () => {
      expect((await store.loadTask(id))?.dueAt).toBeUndefined()
    })
    arrive?.resolve()
    await arrived?.promise
    const child = (await store.loadTask(id))?.children?.[0]?.taskId ?? ''
    expect(await callerOf(slow, name).get(child)).toMatchObject({
      status: { state: 'canceled' },
      history: [],
    })
    expect(runs).toBe(0)
  },
)

test.each(Object.keys(ways))(
  'a child of %s is canceled if its message is refused when it is repeated after a lost response',
  async (way) => {
    gateway.best = 'slow'
    const started = Promise.withResolvers<string>()
    await using slow = await agentOf('slow', async ({ signal, task }) => {
      started.resolve(task.id)
      await untilAborted(signal)
    })
    gateway.onMessage = async (step) => {
      if (step === 'request') return
      gateway.fault = {
        status: 403,
        body: { jsonrpc: '2.0', id: null, error: { code: -32013, message: 'no' } },
      }
      throw new Error('the connection is lost')
    }
    await using planner = await agentOf('planner', async (context) => {
      await expect((async () => ways[way]?.(context))()).rejects.toThrow(CallRefusedError)
      gateway.fault = 'none'
      return 'done'
    })
    const name = client()
    expect((await callerOf(planner, name).sendAndWait('go')).status.state).toBe('completed')
    const child = await started.promise
    await eventually(async () => {
      expect((await callerOf(slow, name).get(child)).status.state).toBe('canceled')
    })
  },
)

test('a child of best is canceled after a crash before its agent was recorded', async () => {
  const dataDir = await folder()
  gateway.best = 'slow'
  const started = Promise.withResolvers<string>()
  await using slow = await agentOf('slow', async ({ signal, task }) => {
    started.resolve(task.id)
    await untilAborted(signal)
  })
  const options: TestAgentOptions = { dataDir, store: 'embedded', drainMs: 0 }
  gateway.onMessage = (step) => (step === 'response' ? new Promise(() => {}) : Promise.resolve())
  const name = client()
  const before = await agentOf('planner', ways['best'] ?? (() => undefined), options)
  const { id } = await callerOf(before, name).send('go')
  const child = await started.promise
  await before[Symbol.asyncDispose]()
  await using after = await agentOf('planner', ways['best'] ?? (() => undefined), options)
  const record = await after.app.services.store.loadTask(id)
  expect(record?.children).toMatchObject([{ taskId: child }])
  expect(record?.children?.[0]).not.toHaveProperty('agent')
  await callerOf(after, name).cancel(id)
  await eventually(async () => {
    expect((await callerOf(slow, name).get(child)).status.state).toBe('canceled')
  })
}, 40_000)

async function folder(): Promise<string> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-delegation-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  return dataDir
}

test('a handler that runs again after a restart receives the tasks of its earlier calls', async () => {
  const calls: string[] = []
  const hold = Promise.withResolvers<void>()
  await using _booker = await agentOf('booker', async ({ text, signal }) => {
    calls.push(text)
    if (text === 'slow') await Promise.race([hold.promise, untilAborted(signal)])
    return `booked ${text}`
  })
  const handle: Handler = async ({ agents }) => {
    const answers = await Promise.all(['one', 'one', 'slow'].map((text) => agents.call('booker', text)))
    return answers.map(({ text }) => text).join()
  }
  const dataDir = await folder()
  const name = client()
  const options: TestAgentOptions = { dataDir, store: 'embedded', drainMs: 0 }
  const before = await agentOf('planner', handle, options)
  const { id } = await callerOf(before, name).send('go')
  await eventually(() => expect(calls).toHaveLength(3))
  const children = (await callerOf(before, name).get(id)).metadata?.children
  await before[Symbol.asyncDispose]()
  await using after = await agentOf('planner', handle, options)
  hold.resolve()
  const task = await callerOf(after, name).wait(id, { signal: AbortSignal.timeout(20_000) })
  expect(textOf(task)).toBe('booked one,booked one,booked slow')
  expect(calls.toSorted()).toEqual(['one', 'one', 'slow'])
  expect(task.metadata?.children).toEqual(children)
}, 40_000)

test('children are canceled after a restart, when the gateway did not respond before', async () => {
  const dataDir = await folder()
  const started = Promise.withResolvers<void>()
  await using slow = await agentOf('slow', async ({ signal }) => {
    started.resolve()
    await untilAborted(signal)
  })
  const options: TestAgentOptions = { dataDir, store: 'embedded', drainMs: 0 }
  const handle: Handler = async ({ agents }) => (await agents.call('slow', 'go')).text
  const name = client()
  const before = await agentOf('planner', handle, options)
  const alice = callerOf(before, name)
  const { id } = await alice.send('go')
  await started.promise
  gateway.fault = { status: 503, body: {} }
  const canceled = await alice.cancel(id)
  const child = canceled.metadata?.children?.[0]?.task_id ?? ''
  await wait(200)
  expect((await callerOf(slow, name).get(child)).status.state).toBe('working')
  await before[Symbol.asyncDispose]()
  gateway.fault = 'none'
  await using _after = await agentOf('planner', handle, options)
  await eventually(async () => {
    expect((await callerOf(slow, name).get(child)).status.state).toBe('canceled')
  })
}, 40_000)

test('no answer, event, log line or file contains a token, and the sealed one is removed at the end', async () => {
  const lines: string[] = []
  const dataDir = await folder()
  await using _booker = await agentOf('booker', () => 'booked')
  const inside = Promise.withResolvers<void>()
  const leave = Promise.withResolvers<void>()
  const contexts: unknown[] = []
  await using planner = await agentOf(
    'planner',
    async (context) => {
      contexts.push({ ...context, log: undefined, agents: undefined })
      await context.agents.call('booker', 'go')
      inside.resolve()
      await leave.promise
      await context.agents.call('absent', 'go').catch(() => {})
      return 'done'
    },
    { dataDir, store: 'embedded', env: { LOG_LEVEL: 'trace' }, logTo: { write: (line) => lines.push(line) } },
  )
  const alice = callerOf(planner, client())
  const { id } = await alice.send('go')
  await inside.promise
  const running = await planner.app.services.store.loadTask(id)
  expect(running?.authority).toMatch(/^[\w-]{60,}$/)
  const files = () =>
    ['agent.db', 'agent.db-wal'].map((name) => {
      try {
        return readFileSync(path.join(dataDir, name), 'latin1')
      } catch {
        return ''
      }
    })
  const early = files()
  const answered = [JSON.stringify(await alice.get(id))]
  leave.resolve()
  const task = await alice.wait(id)
  answered.push(
    JSON.stringify(task),
    JSON.stringify(await alice.list()),
    JSON.stringify(await alice.events(id)),
    JSON.stringify(contexts),
    ...lines,
  )
  const shown = answered.join('\n')
  expect(shown).not.toContain(running?.authority)
  expect(shown).not.toContain('authority":')
  const all = [shown, ...early, ...files()].join('\n')
  expect([...gateway.tokens].filter((token) => all.includes(token))).toEqual([])
  expect(await planner.app.services.store.loadTask(id)).not.toHaveProperty('authority')
})
