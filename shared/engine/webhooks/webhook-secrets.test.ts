import { randomUUID } from 'node:crypto'
import { testAgent } from '@parley/agent/testing'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { expect, test } from 'vitest'

const token = 'the-webhook-token'
const secretPath = 'a-secret-path'

test('logs neither the token nor the URL path of a webhook, regardless of the outcome of the events', async () => {
  const lines: string[] = []
  await using receiver = await WebhookReceiver.start({
    answer: ({ path }) => Number(/\d{3}/.exec(path)?.[0] ?? 200),
  })
  {
    await using agent = await testAgent(
      { handle: () => 'done', globalWebhook: { url: `http://127.0.0.1:1/${secretPath}`, token } },
      {
        env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1', LOG_LEVEL: 'trace' },
        logTo: { write: (line) => void lines.push(line) },
      },
    )
    const caller = agent.caller('alice')
    const at = (url: string, more: object = {}) => ({
      push_notification_config: { id: randomUUID(), url, token, ...more },
    })
    for (const status of [200, 302, 404])
      await caller.sendAndWait('hello', at(`${receiver.url}/${secretPath}/${status}`))
    // These are refused immediately because of a forbidden address or a token with a line break.
    const refused = [
      at(`http://10.0.0.1/${secretPath}`),
      at(receiver.url, { token: `${token}\r\nX-Admin: yes` }),
    ]
    for (const configuration of refused) {
      const error = await caller.send('hello', configuration).catch((thrown: unknown) => thrown)
      expect(error).toMatchObject({ code: -32602 })
      expect(JSON.stringify(error)).not.toMatch(/the-webhook-token|a-secret-path/)
    }
    // The global webhook points to a closed port.
    await caller.sendAndWait('hello')
    await receiver.waitFor(({ length }) => length >= 9)
  }
  expect(receiver.posts.every(({ headers }) => headers.authorization === `Bearer ${token}`)).toBe(true)
  // Lost events are logged.
  expect(lines.join('')).toContain('webhook')
  expect(lines.filter((line) => /the-webhook-token|a-secret-path|X-Admin/.test(line))).toEqual([])
})
