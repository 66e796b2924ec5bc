import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import type { WebhookReceiver } from '../testing/webhook-receiver.ts'
import type { ClientKind, InteropClient, Operation } from './client.ts'
import { framesIn, type TaskView, taskIn } from './read.ts'

/** A client connected to an address, and what its steps need. */
export interface Trial {
  kind: ClientKind
  client: InteropClient
  base: string
  token: string
  receiver: WebhookReceiver
}

export interface Step {
  name: string
  needs: readonly Operation[]
  run(trial: Trial): Promise<void>
}

const patienceMs = 30_000
/** Time for a subscription to begin. */
const subscribeMs = 500

const sent = async ({ client }: Trial, text: string, more: object = {}): Promise<TaskView> =>
  taskIn(await client.call('send', { text, ...more }))

/** A task that waits for the value of `x`. */
const paused = async (trial: Trial, more: object = {}): Promise<TaskView> => {
  const task = await sent(trial, 'calculate x^2 + 1', more)
  assert.equal(task.state, 'input-required')
  return task
}

async function untilEnded({ client }: Trial, id: string): Promise<TaskView> {
  for (const end = Date.now() + patienceMs; ; await wait(50)) {
    const task = taskIn(await client.call('get', { id }))
    if (task.state === 'completed') return task
    assert.ok(Date.now() < end, `the task is still ${task.state}`)
  }
}

/** Requires that the SDK throws an error with a matching name or text. */
async function refused(call: Promise<unknown>, pattern: RegExp): Promise<void> {
  const outcome = await call.then(
    () => 'no error',
    (error: unknown) => {
      if (!(error instanceof Error)) return String(error)
      return `${error.name}: ${error.message} ${'code' in error ? String(error.code) : ''}`
    },
  )
  assert.match(outcome, pattern)
}

const cardFields = z.looseObject({
  name: z.string().min(1),
  capabilities: z.looseObject({ streaming: z.literal(true), pushNotifications: z.literal(true) }),
  skills: z.array(z.looseObject({ id: z.string() })).min(1),
})
const configs = z.array(z.looseObject({}))

/** Each step is one call, or a few, of a client of A2A against the calculator. */
export const steps: readonly Step[] = [
  {
    name: 'card',
    needs: ['card'],
    run: async ({ client }) => void cardFields.parse(await client.call('card')),
  },
  {
    name: 'send, waits',
    needs: ['send'],
    run: async (trial) => {
      const task = await sent(trial, 'calculate 6*7')
      assert.equal(task.state, 'completed')
      assert.match(task.text, /42/)
    },
  },
  {
    name: 'send, returns',
    needs: ['send', 'get'],
    run: async (trial) => {
      const task = await sent(trial, 'calculate 6*7', { waits: false })
      assert.match((await untilEnded(trial, task.id)).text, /42/)
    },
  },
  {
    name: 'stream',
    needs: ['stream'],
    run: async ({ client, kind }) => {
      const frames = framesIn(await client.call('stream', { text: 'calculate 6*7' }))
      if (kind.dialect !== 'parley') assert.equal(frames[0]?.kind, 'task')
      assert.equal(frames.at(-1)?.state, 'completed')
      assert.ok(frames.some(({ kind }) => kind === 'artifact-update'))
    },
  },
  {
    name: 'continue',
    needs: ['send'],
    run: async (trial) => {
      const { id, contextId } = await paused(trial)
      const task = await sent(trial, '5', { id, contextId })
      assert.deepEqual([task.id, task.contextId, task.state], [id, contextId, 'completed'])
      assert.match(task.text, /26/)
    },
  },
  {
    name: 'subscribe',
    needs: ['subscribe'],
    run: async (trial) => {
      const { id } = await paused(trial)
      await using other = await trial.kind.connect(trial.base, trial.token)
      const subscribed = other.call('subscribe', { id })
      await wait(subscribeMs)
      await trial.client.call('cancel', { id })
      const frames = framesIn(await subscribed)
      assert.equal(frames[0]?.task?.id, id)
      // In 0.3, the stream ends with the pause.
      const last = trial.kind.dialect === '1.0' ? 'canceled' : 'input-required'
      assert.equal(frames.at(-1)?.state, last)
    },
  },
  {
    name: 'get',
    needs: ['get'],
    run: async (trial) => {
      const task = await sent(trial, 'calculate 6*7')
      assert.deepEqual(taskIn(await trial.client.call('get', { id: task.id })), task)
    },
  },
  {
    name: 'list',
    needs: ['list'],
    run: async (trial) => {
      // In A2A, a context ID may be any text.
      const contextId = trial.kind.dialect === 'parley' ? randomUUID() : `interop:${randomUUID()}/1`
      const task = await sent(trial, 'calculate 6*7', { contextId })
      assert.equal(task.contextId, contextId)
      const listed = z.looseObject({ tasks: z.array(z.unknown()) })
      const { tasks } = listed.parse(await trial.client.call('list', { contextId }))
      assert.deepEqual(
        tasks.map((one) => taskIn(one).id),
        [task.id],
      )
    },
  },
  {
    name: 'cancel',
    needs: ['cancel'],
    run: async (trial) => {
      const { id } = await paused(trial)
      assert.equal(taskIn(await trial.client.call('cancel', { id })).state, 'canceled')
      await refused(trial.client.call('cancel', { id }), /cancel/i)
    },
  },
  {
    name: 'push config',
    needs: ['setPush', 'getPush'],
    run: async (trial) => {
      const { id } = await paused(trial)
      const { url } = trial.receiver
      const config = { id, configId: 'interop-1' }
      await trial.client.call('setPush', { ...config, url, token: 'a token' })
      assert.match(JSON.stringify(await trial.client.call('getPush', config)), new RegExp(url))
    },
  },
  {
    name: 'push list, delete',
    needs: ['setPush', 'listPush', 'deletePush'],
    run: async (trial) => {
      const { id } = await paused(trial)
      const { url } = trial.receiver
      const list = async () => configs.parse(await trial.client.call('listPush', { id })).length
      for (const configId of ['interop-1', 'interop-2'])
        await trial.client.call('setPush', { id, configId, url, token: 'a token' })
      assert.equal(await list(), 2)
      await trial.client.call('deletePush', { id, configId: 'interop-1' })
      assert.equal(await list(), 1)
    },
  },
  {
    name: 'webhook',
    needs: ['setPush', 'send'],
    run: async (trial) => {
      const { id, contextId } = await paused(trial)
      const token = `token-${id}`
      await trial.client.call('setPush', { id, configId: 'interop-1', url: trial.receiver.url, token })
      await sent(trial, '5', { id, contextId })
      const ofTask = () =>
        trial.receiver.posts.filter(({ headers }) => headers['x-a2a-notification-token'] === token)
      const isLast = ({ body }: { body: Buffer }) => /completed/i.test(body.toString())
      await trial.receiver.waitFor(() => ofTask().some(isLast))
      const is1 = /"(statusUpdate|task)":/.test(ofTask().find(isLast)?.body.toString() ?? '')
      assert.equal(is1, trial.kind.dialect === '1.0', 'the webhook has the form of the other dialect')
    },
  },
  {
    name: 'errors',
    needs: ['get', 'send'],
    run: async (trial) => {
      const id = randomUUID()
      await refused(trial.client.call('get', { id }), /TaskNotFound|-32001/)
      if (trial.kind.dialect !== 'parley')
        await refused(trial.client.call('send', { id, text: '5' }), /TaskNotFound|-32001/)
      const ended = await sent(trial, 'calculate 6*7')
      const again = trial.client.call('send', { id: ended.id, contextId: ended.contextId, text: '5' })
      await refused(again, /UnsupportedOperation|-32004|-32008/)
    },
  },
  {
    name: 'auth',
    needs: ['send'],
    run: async ({ kind, base }) => {
      await using anonymous = await kind.connect(base)
      await refused(anonymous.call('send', { text: 'calculate 6*7' }), /401|authentication required/i)
    },
  },
]
