import { traceIdOf } from '@parley/kit/telemetry/trace-context'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'
import { testAgent } from '../testing.ts'

test('an agent that exports nothing stores the trace of its caller and passes it on to webhooks', async () => {
  await using receiver = await WebhookReceiver.start()
  await using agent = await testAgent(
    { handle: () => 'done' },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const params = {
    message: {
      role: 'user',
      kind: 'message',
      messageId: crypto.randomUUID(),
      parts: [{ kind: 'text', text: 'hello' }],
    },
    configuration: { pushNotificationConfig: { id: crypto.randomUUID(), url: receiver.url } },
  }
  const response = await fetch(agent.url, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${agent.caller('alice').token}`,
      traceparent,
      tracestate: 'vendor=1',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params }),
  })
  expect(response.headers.get('traceresponse')).toBeNull()
  const text = await response.text()
  // The trace is not part of the task that the caller receives.
  expect(text).not.toContain(traceIdOf({ traceparent }))
  const [post] = await receiver.waitFor(3)
  expect(post?.headers).toMatchObject({ traceparent, tracestate: 'vendor=1' })
})

test('a task is logged in one line when it is accepted and in one when it has ended, without its texts', async () => {
  const lines: string[] = []
  const logTo = { write: (line: string) => void lines.push(line) }
  await using agent = await testAgent(
    {
      handle: () => {
        throw new Error('the secret reason')
      },
    },
    { env: { LOG_LEVEL: 'info' }, logTo },
  )
  const task = await agent.caller('alice').sendAndWait('the secret text')
  const about = lines.filter((line) => line.includes('"msg":"task '))
  const of = { level: 30, task_id: task.id, context_id: task.context_id, owner: 'alice' }
  expect(about.map((line): unknown => JSON.parse(line))).toMatchObject([
    { ...of, state: 'submitted', msg: 'task accepted' },
    { ...of, state: 'failed', starts: 1, msg: 'task ended' },
  ])
  expect(about.join('')).not.toContain('secret')
})
