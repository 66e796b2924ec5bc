import { mkdtemp } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { chunk, relayed, type Script, type State, status, statusOf, taskOf } from './relayed.cases.ts'

test('a bare message completes the task as its answer', async () => {
  const { caller, foreign } = await relayed((_request, reply) =>
    reply.result({ message: { messageId: 'a-1', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] } }),
  )
  const task = await caller.sendAndWait('hello')
  expect(task).toMatchObject({ status: { state: 'completed', message: { parts: [{ text: 'Hi' }] } } })
  expect(task.artifacts ?? []).toEqual([])
  expect(foreign.requests[0]?.params['message']).toMatchObject({
    role: 'ROLE_USER',
    parts: [{ text: 'hello' }],
  })
})

test('a task without a stream is read until it has ended', async () => {
  let reads = 0
  const { caller, foreign } = await relayed((request, reply) => {
    if (request.method === 'SendMessage') return reply.result({ task: taskOf('SUBMITTED') })
    reads += 1
    const artifacts = [{ artifactId: 'a', name: 'answer', parts: [{ text: '42' }] }]
    return reply.result(reads < 3 ? taskOf('WORKING') : taskOf('COMPLETED', { artifacts }, 'Done'))
  })
  const task = await caller.sendAndWait('hello')
  expect(task).toMatchObject({
    status: { state: 'completed', message: { parts: [{ text: 'Done' }] } },
    artifacts: [{ name: 'answer', parts: [{ text: '42' }] }],
  })
  expect(foreign.requests.map(({ method }) => method)).toEqual([
    'SendMessage',
    'GetTask',
    'GetTask',
    'GetTask',
  ])
})

test('the answer may be the last message of the history', async () => {
  const history = [
    { messageId: 'u', role: 'ROLE_USER', parts: [{ text: 'hello' }] },
    { messageId: 'a', role: 'ROLE_AGENT', parts: [{ text: 'Hi' }] },
  ]
  const { caller } = await relayed((_, reply) => reply.result({ task: taskOf('COMPLETED', { history }) }))
  const task = await caller.sendAndWait('hello')
  expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Hi' }] } })
})

describe('ends and pauses', () => {
  test.each<[State, string, object]>([
    ['FAILED', 'No paper', { state: 'failed', message: { parts: [{ text: 'No paper' }] } }],
    ['REJECTED', 'Not mine', { state: 'rejected', message: { parts: [{ text: 'Not mine' }] } }],
    [
      'CANCELED',
      'Shut down',
      { state: 'failed', message: { parts: [{ text: 'The agent canceled the task: Shut down' }] } },
    ],
    ['AUTH_REQUIRED', 'Sign in', { state: 'auth-required', message: { parts: [{ text: 'Sign in' }] } }],
    ['INPUT_REQUIRED', 'Which?', { state: 'input-required', message: { parts: [{ text: 'Which?' }] } }],
  ])('%s', async (state, text, expected) => {
    const { caller } = await relayed((_, reply) => reply.result({ task: taskOf(state, {}, text) }))
    expect((await caller.sendAndWait('hello')).status).toMatchObject(expected)
  })

  test('the answer to a question continues the task at the agent, and its earlier artifacts are kept', async () => {
    const artifacts = [{ artifactId: 'a', name: 'answer', parts: [{ text: '42' }] }]
    const { caller, foreign } = await relayed((request, reply) => {
      if (request.method === 'GetTask') return reply.result(taskOf('COMPLETED', { artifacts }))
      const isFirst = foreign.requests.length === 1
      return reply.result({ task: isFirst ? taskOf('INPUT_REQUIRED', {}, 'Which?') : taskOf('COMPLETED') })
    })
    const paused = await caller.sendAndWait('hello')
    const task = await caller.sendAndWait({
      parts: [{ kind: 'text', text: 'this' }],
      taskId: paused.id,
      contextId: paused.context_id,
    })
    expect(task.id).toBe(paused.id)
    expect(task).toMatchObject({ status: { state: 'completed' }, artifacts: [{ name: 'answer' }] })
    expect(foreign.requests[1]?.params['message']).toMatchObject({ taskId: 't-1', contextId: 'c-1' })
  })

  test('the terms of a paid agent reach the caller, whose payment reaches the agent', async () => {
    const terms = { 'x402.payment.status': 'payment-required', 'x402.payment.required': { accepts: [{}] } }
    const asked = taskOf('INPUT_REQUIRED', {}, 'Pay me')
    Object.assign(asked.status.message ?? {}, { metadata: { ...terms, other: 'x' } })
    const { caller, foreign } = await relayed((request, reply) => {
      if (request.method === 'GetTask') return reply.result(taskOf('COMPLETED'))
      return reply.result({ task: foreign.requests.length === 1 ? asked : taskOf('COMPLETED') })
    })
    const paused = await caller.sendAndWait('hello')
    expect(paused.status.message?.metadata).toEqual(terms)
    const metadata = {
      'x402.payment.status': 'payment-submitted',
      'x402.payment.payload': { x402Version: 1 },
    }
    const answer = { parts: [{ kind: 'text' as const, text: 'paid' }], metadata }
    await caller.sendAndWait({ ...answer, taskId: paused.id, contextId: paused.context_id })
    expect(foreign.requests[1]?.params['message']).toMatchObject({ taskId: 't-1', metadata })
  })

  test.each<[State, string]>([
    ['COMPLETED', 'completed'],
    ['FAILED', 'failed'],
  ])('the receipts in the status of a paid task that is %s reach the caller', async (state, ours) => {
    const receipts = [{ success: state === 'COMPLETED', transaction: '0x1', network: 'base' }]
    const paid = taskOf(state, { artifacts: [{ artifactId: 'a', parts: [{ text: '42' }] }] }, 'Paid')
    const metadata = { 'x402.payment.status': 'payment-completed', 'x402.payment.receipts': receipts }
    Object.assign(paid.status.message ?? {}, { metadata: { ...metadata, other: 'x' } })
    const { caller } = await relayed((_request, reply) => reply.result({ task: paid }))
    const task = await caller.sendAndWait('hello')
    expect(task.status).toMatchObject({ state: ours, message: { parts: [{ text: 'Paid' }] } })
    expect(task.status.message?.metadata).toEqual(metadata)
  })

  test('a snapshot of the earlier pause, with which agents of a2a-js continue a task, does not pause it', async () => {
    const pause = { ...statusOf('INPUT_REQUIRED', 'Which?'), timestamp: '2026-01-01T00:00:00.000Z' }
    const snapshot = { task: taskOf('INPUT_REQUIRED', { status: pause }) }
    const { caller, foreign } = await relayed(
      async (_request, reply) => {
        reply.frame(snapshot)
        if (foreign.requests.length > 1) {
          await wait(20)
          reply.frame(status('WORKING'))
          reply.frame(status('COMPLETED', 'Done'))
        }
        reply.end()
      },
      { streaming: true },
    )
    const paused = await caller.sendAndWait('hello')
    expect(paused.status.state).toBe('input-required')
    const task = await caller.sendAndWait({
      parts: [{ kind: 'text', text: 'this' }],
      taskId: paused.id,
      contextId: paused.context_id,
    })
    expect(task.status).toMatchObject({ state: 'completed', message: { parts: [{ text: 'Done' }] } })
  })

  test('a later task of the context names the context of the agent', async () => {
    const { caller, foreign } = await relayed((_, reply) => reply.result({ task: taskOf('COMPLETED') }))
    const first = await caller.sendAndWait('hello')
    await caller.sendAndWait({ parts: [{ kind: 'text', text: 'more' }], contextId: first.context_id })
    expect(foreign.requests[0]?.params['message']).not.toHaveProperty('contextId')
    expect(foreign.requests[1]?.params['message']).toMatchObject({ contextId: 'c-1' })
  })
})

describe('failures', () => {
  test.each<[string, Script, string]>([
    ['refuses', (_, reply) => reply.error(-32_602, 'Too long'), 'The agent refused the message: Too long'],
    [
      'forgets the task',
      ({ method }, reply) =>
        method === 'SendMessage'
          ? reply.result({ task: taskOf('WORKING') })
          : reply.error(-32_001, 'No such task'),
      'The agent no longer knows the task. It may have been restarted.',
    ],
    [
      'answers about another task',
      ({ method }, reply) =>
        reply.result(
          method === 'SendMessage' ? { task: taskOf('WORKING') } : taskOf('COMPLETED', { id: 't-2' }),
        ),
      'Invalid agent response: The agent answered with another task',
    ],
    [
      'is lost during the message',
      (_, { response }) => void response.destroy(),
      'The connection was lost before the end of the response. It is not known whether it has received the message.',
    ],
    [
      'is no longer reachable',
      ({ method }, reply) =>
        method === 'SendMessage' ? reply.result({ task: taskOf('WORKING') }) : void reply.response.destroy(),
      'The agent is no longer reachable: The connection was lost before the end of the response.',
    ],
    [
      'sends too much',
      (_, reply) =>
        reply.result({
          task: taskOf('COMPLETED', {
            artifacts: [{ artifactId: 'a', parts: [{ text: 'x'.repeat(200_000) }] }],
          }),
        }),
      "Invalid agent response: The agent's output is larger than 100000 bytes",
    ],
  ])('an agent that %s', async (_what, script, reason) => {
    const { caller } = await relayed(script)
    expect((await caller.sendAndWait('hello')).status).toMatchObject({
      state: 'failed',
      message: { parts: [{ text: reason }] },
    })
  })

  test('a lost stream is resumed, and then the task is read', async () => {
    const { caller, foreign } = await relayed(
      ({ method }, reply) => {
        if (method === 'SendStreamingMessage') {
          reply.frame({ task: taskOf('WORKING') })
          setTimeout(() => reply.response.destroy(), 20)
        } else if (method === 'SubscribeToTask') reply.error(-32_004, 'no')
        else reply.result(taskOf('COMPLETED', {}, 'Done'))
      },
      { streaming: true },
    )
    expect((await caller.sendAndWait('hello')).status.state).toBe('completed')
    expect(foreign.requests.map(({ method }) => method)).toEqual([
      'SendStreamingMessage',
      'SubscribeToTask',
      'GetTask',
    ])
  })

  test('a frame of another task fails the task', async () => {
    const { caller } = await relayed(
      (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        reply.frame({ statusUpdate: { taskId: 't-2', contextId: 'c-1', status: statusOf('COMPLETED') } })
        reply.end()
      },
      { streaming: true },
    )
    expect((await caller.sendAndWait('hello')).status).toMatchObject({
      state: 'failed',
      message: { parts: [{ text: 'Invalid agent response: The agent sent a frame of another task' }] },
    })
  })

  test('a state that goes back, and frames after the end, change nothing', async () => {
    const { caller } = await relayed(
      (_, reply) => {
        reply.frame({ task: taskOf('WORKING') })
        reply.frame(status('SUBMITTED'))
        reply.frame(chunk('42'))
        reply.frame(status('COMPLETED', 'Done'))
        reply.frame(status('FAILED', 'No'))
      },
      { streaming: true },
    )
    expect(await caller.sendAndWait('hello')).toMatchObject({
      status: { state: 'completed', message: { parts: [{ text: 'Done' }] } },
      artifacts: [{ name: 'answer', metadata: { by: 'test' } }],
    })
  })
})

describe('restarts of the relay', () => {
  test('a task that is known at the agent is followed and not sent again', async () => {
    const dataDir = await mkdtemp(path.join(os.tmpdir(), 'relay-'))
    let isDone = false
    const script: Script = ({ method }, reply) =>
      reply.result(
        method === 'SendMessage' ? { task: taskOf('WORKING') } : taskOf(isDone ? 'COMPLETED' : 'WORKING'),
      )
    const first = await relayed(script, { dataDir })
    const sent = await first.caller.send('hello')
    await expect.poll(() => first.foreign.requests.some(({ method }) => method === 'GetTask')).toBe(true)
    await first.stop()
    isDone = true
    const second = await relayed(script, { dataDir, identityProvider: first.agent.identityProvider })
    await expect.poll(async () => (await second.caller.get(sent.id)).status.state).toBe('completed')
    expect(second.foreign.requests.map(({ method }) => method)).not.toContain('SendMessage')
  })

  test.each<[string, State, string, string, string[]]>([
    ['completed', 'COMPLETED', 'a-2', 'completed', []],
    ['asked another question', 'INPUT_REQUIRED', 'a-2', 'input-required', []],
    ['still waits for it', 'INPUT_REQUIRED', 'a-1', 'completed', ['SendMessage']],
  ])('an agent without a history that has %s after the message of a continued task', async (...given) => {
    const [, state, messageId, expected, sent] = given
    const dataDir = await mkdtemp(path.join(os.tmpdir(), 'relay-'))
    const first = await relayed(
      ({ params }, reply) => {
        const isFirst = !JSON.stringify(params).includes('t-1')
        if (isFirst) reply.result({ task: taskOf('INPUT_REQUIRED', {}, 'Which?') })
      },
      { dataDir },
    )
    const paused = await first.caller.sendAndWait('hello')
    const ids = { taskId: paused.id, contextId: paused.context_id }
    await first.caller.send({ parts: [{ kind: 'text', text: 'this' }], ...ids })
    await expect.poll(() => first.foreign.requests.length).toBe(2)
    await first.stop()
    const now = taskOf(state, {}, 'So?')
    Object.assign(now.status.message ?? {}, { messageId })
    const second = await relayed(
      ({ method }, reply) => reply.result(method === 'GetTask' ? now : { task: taskOf('COMPLETED') }),
      { dataDir, identityProvider: first.agent.identityProvider },
    )
    await expect.poll(async () => (await second.caller.get(paused.id)).status.state).toBe(expected)
    const methods = second.foreign.requests.map(({ method }) => method)
    expect(methods.filter((method) => method === 'SendMessage')).toEqual(sent)
  })

  test('a message whose receipt is unknown is not sent again', async () => {
    const dataDir = await mkdtemp(path.join(os.tmpdir(), 'relay-'))
    const first = await relayed(() => {}, { dataDir })
    const sent = await first.caller.send('hello')
    await expect.poll(() => first.foreign.requests.length).toBe(1)
    await first.stop()
    const second = await relayed((_, reply) => reply.result({ task: taskOf('COMPLETED') }), {
      dataDir,
      identityProvider: first.agent.identityProvider,
    })
    await expect.poll(async () => (await second.caller.get(sent.id)).status.state).toBe('failed')
    expect(second.foreign.requests).toEqual([])
  })
})
