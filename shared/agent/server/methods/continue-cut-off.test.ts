import { randomUUID } from 'node:crypto'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { ParleyError } from '@parley/wire/errors'
import { expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

test.each([
  ['keeps its webhook if it was stored but its answer was lost', 'Unavailable', 1],
  ['loses its webhook if it was refused', 'UnsupportedOperation', 0],
] as const)('a message to a paused task %s', async (_title, refusal, left) => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await testAgent(
    { handle: ({ history, ask }) => (history.length === 1 ? ask('which?') : 'done') },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
  const alice = agent.caller('alice')
  const { engine, store } = agent.app.services
  const { id: taskId } = await alice.sendAndWait('go')
  Object.defineProperty(store, 'exclusive', { value: false })
  const change = engine.change.bind(engine)
  engine.change = async (...given) => {
    engine.change = change
    if (refusal === 'Unavailable') await change(...given)
    throw new ParleyError(refusal)
  }
  const config = { push_notification_config: { id: randomUUID(), url: receiver.url } }
  await expect(alice.send({ text: 'this', taskId }, config)).rejects.toThrow(/./)
  expect(await alice.listPushConfigs(taskId)).toHaveLength(left)
  if (left === 0) return
  const { version, owner } = (await store.loadTask(taskId)) ?? { version: 0, owner: '' }
  agent.app.services.scheduler.enqueue({ taskId, version, owner })
  await receiver.waitFor((posts) => posts.some(({ event }) => event.kind === 'status-update' && event.final))
})
