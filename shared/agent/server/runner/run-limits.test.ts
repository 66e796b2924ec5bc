import { mkdtempSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { expirePauses } from '@parley/engine/tasks/expiry'
import { expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'
import { resolveAgent } from '../../author/agent.ts'
import { testAgent } from '../../testing.ts'

test('the output of a handler is committed once the store works again', async () => {
  const dataDir = mkdtempSync(path.join(tmpdir(), 'parley-locked-'))
  onTestFinished(() => rmSync(dataDir, { recursive: true, force: true }))
  const made = Promise.withResolvers<string>()
  await using agent = await testAgent({ handle: () => made.promise }, { dataDir })
  const alice = agent.caller('alice')
  const { id } = await alice.send('go')
  await alice.wait(id, { untilStates: ['working'] })
  const handle = await open(path.join(dataDir, 'agent.db-log.1'))
  const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
  onTestFinished(() => sync.mockRestore())
  await handle.close()
  sync.mockRejectedValue(new Error('EIO'))
  made.resolve('made while nothing could be written')
  await expect.poll(() => sync.mock.calls.length).toBeGreaterThan(2)
  expect((await alice.get(id)).status.state).toBe('working')
  sync.mockRestore()
  const task = await alice.wait(id, { signal: AbortSignal.timeout(60_000) })
  expect(task.artifacts[0]?.parts).toMatchObject([{ text: 'made while nothing could be written' }])
})

test('an error with a code is reported as `The agent failed.` without disclosing paths or library messages', async () => {
  const load = createRequire(import.meta.url)
  await using agent = await testAgent({ handle: () => load('not-there') as string })
  const { status } = await agent.caller('alice').sendAndWait('go')
  expect(status).toMatchObject({ state: 'failed', message: { parts: [{ text: 'The agent failed.' }] } })
})

test('a message with an unknown skill is rejected with the list of skills and does not run unvalidated', async () => {
  const skills = [{ id: 'add', name: 'Add', description: 'Adds', input: z.object({ a: z.number() }) }]
  await using agent = await testAgent({ skills, handle: () => 'ran' })
  const task = await agent.caller('alice').sendAndWait({ text: 'go', metadata: { skill_id: 'typo' } })
  expect(task.status).toMatchObject({
    state: 'rejected',
    message: { parts: [{ text: expect.stringContaining('add') }] },
  })
})

test('a handler that empties its history does not change the stored task', async () => {
  await using agent = await testAgent({
    handle: ({ history }) => {
      history[0]?.parts.splice(0)
      history.length = 0
      return 'done'
    },
  })
  const { history } = await agent.caller('alice').sendAndWait('kept')
  expect(history[0]).toMatchObject({ role: 'user', parts: [{ text: 'kept' }] })
})

test('a deadline above the maximum of a timer makes the definition invalid', () => {
  const skills = [{ id: 'x', name: 'X', description: 'x' }]
  const define = (deadlineMs: number) =>
    resolveAgent({ name: 'a', description: 'a', skills, deadlineMs, handle: () => 'x' })
  expect(define(2 ** 31 - 1).deadlineMs).toBe(2 ** 31 - 1)
  expect(() => define(2 ** 31)).toThrow('deadlineMs')
})

test('TASK_QUEUE_MAX also applies to messages to paused tasks', async () => {
  await using agent = await testAgent(
    {
      concurrency: 1,
      handle: ({ history, ask }) => (history.length === 1 ? ask('well?') : new Promise<string>(() => {})),
    },
    { env: { TASK_QUEUE_MAX: '1' }, drainMs: 50 },
  )
  const alice = agent.caller('alice')
  const paused = [await alice.sendAndWait('1'), await alice.sendAndWait('2'), await alice.sendAndWait('3')]
  const answer = (i: number) => alice.send({ text: 'go on', taskId: paused[i]?.id ?? '' })
  await answer(0)
  await alice.wait(paused[0]?.id ?? '', { untilStates: ['working'] })
  await answer(1)
  await expect(answer(2)).rejects.toMatchObject({ code: -32042, status: 503 })
  expect((await alice.get(paused[2]?.id ?? '')).status.state).toBe('input-required')
})

test('a UUID in upper case and in lower case identifies the same task', async () => {
  await using agent = await testAgent({ handle: () => 'done' })
  const alice = agent.caller('alice')
  const id = 'ABCDEF01-2345-4789-ABCD-EF0123456789'
  await alice.send({ text: 'go', taskId: id })
  expect((await alice.get(id)).id).toBe(id.toLowerCase())
})

test('a message from the caller with the role `assistant` counts as a message from the caller', async () => {
  const skills = [{ id: 'add', name: 'Add', description: 'Adds', input: z.object({ a: z.number() }) }]
  await using agent = await testAgent({
    skills,
    handle: ({ history, ask, input }) =>
      history.length === 1 ? ask('sure?') : { got: (input as { a: number }).a },
  })
  const alice = agent.caller('alice')
  const said = { role: 'assistant' as const, parts: [{ kind: 'data' as const, data: { a: 7 } }] }
  const { id } = await alice.sendAndWait(said)
  await alice.send({ text: 'yes', taskId: id })
  expect((await alice.wait(id)).artifacts[0]?.parts).toMatchObject([{ data: { got: 7 } }])
})

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))

test('a task fails at the deadline of its caller, which aborts the signal, even if the agent has no deadline', async () => {
  const aborted = Promise.withResolvers<void>()
  await using agent = await testAgent({
    deadlineMs: 0,
    handle: async ({ signal }) => {
      await untilAborted(signal)
      aborted.resolve()
    },
  })
  const { status } = await agent.caller('alice').sendAndWait('go', { deadline_ms: 200 })
  expect(status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: 'The task exceeded the deadline that its caller set.' }] },
  })
  await aborted.promise
})

test('the shorter deadline of agent and caller applies', async () => {
  await using agent = await testAgent({ deadlineMs: 100, handle: ({ signal }) => untilAborted(signal) })
  const { status } = await agent.caller('alice').sendAndWait('go', { deadline_ms: 60_000 })
  expect(status.message?.parts).toMatchObject([{ text: 'The task exceeded its deadline of 100 ms.' }])
})

test('the deadline of the caller includes pauses, and a new message sets a new deadline', async () => {
  await using agent = await testAgent({
    handle: ({ ask, text, history }) => (history.length === 1 ? ask('what?') : `got ${text}`),
  })
  const alice = agent.caller('alice')
  const [late, answered] = [
    await alice.sendAndWait('a', { deadline_ms: 1000 }),
    await alice.sendAndWait('b', { deadline_ms: 1000 }),
  ]
  await alice.sendAndWait({ text: 'that', taskId: answered.id }, { deadline_ms: 60_000 })
  await expirePauses(agent.app.services.engine, Date.now() + 2000)
  expect((await alice.get(answered.id)).status.state).toBe('completed')
  expect((await alice.get(late.id)).status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: 'The task was not answered before the deadline that its caller set.' }] },
  })
})

test.each([0, -1, 1.5, '200', 2 ** 31])(
  'a message with the deadline %j is rejected with -32602',
  async (deadline) => {
    await using agent = await testAgent({ handle: () => 'done' })
    const sent = agent.caller('alice').send('go', { deadline_ms: deadline as number })
    await expect(sent).rejects.toMatchObject({ code: -32602 })
  },
)
