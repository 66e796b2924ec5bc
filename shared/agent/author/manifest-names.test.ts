import { expect, test } from 'vitest'
import { resolveAgent } from './agent.ts'
import type { AgentDefinition } from './define-agent.ts'

const definition: AgentDefinition = {
  name: 'old',
  description: 'd',
  skills: [{ id: 's', name: 'S', description: 's' }],
  handle: () => 'done',
}
const url = 'https://hooks.example/'

test.each<[string, Partial<AgentDefinition>, boolean]>([
  ['push_notifications', { push_notifications: false }, false],
  ['capabilities.push_notifications', { capabilities: { push_notifications: false } }, false],
  ['push_notifications: true', { push_notifications: true, capabilities: { streaming: false } }, true],
  [
    'both spellings of the same value',
    { push_notifications: false, capabilities: { pushNotifications: false } },
    false,
  ],
])('an agent definition with %s is accepted', (_name, more, pushNotifications) => {
  const streaming = more.capabilities?.streaming ?? true
  expect(resolveAgent({ ...definition, ...more }).capabilities).toEqual({ streaming, pushNotifications })
})

test('an agent definition may use the deprecated names global_webhook_url and global_webhook_token', () => {
  const agent = resolveAgent({ ...definition, global_webhook_url: url, global_webhook_token: 't' })
  expect(agent.globalWebhook).toEqual({ url, token: 't' })
  expect(agent.deprecations?.map(({ name }) => name)).toEqual(['global_webhook_url', 'global_webhook_token'])
  expect(resolveAgent({ ...definition, globalWebhook: { url } }).deprecations).toEqual([])
})

test.each<[string, Partial<AgentDefinition>, string]>([
  [
    'two different values',
    { global_webhook_url: url, globalWebhook: { url: 'https://other.example/' } },
    'defineAgent: global_webhook_url and globalWebhook.url differ. Keep only globalWebhook.url.',
  ],
  [
    'a yes and a no',
    { push_notifications: true, capabilities: { pushNotifications: false } },
    'push_notifications and capabilities.pushNotifications differ',
  ],
  ['a token without an address', { global_webhook_token: 't' }, 'which is missing'],
  ['an address that is none', { global_webhook_url: 'x' }, 'globalWebhook.url must be an http or https URL'],
])('a definition with %s is refused with an explanation', (_what, more, sentence) => {
  expect(() => resolveAgent({ ...definition, ...more })).toThrow(sentence)
})

test('resolving a definition does not modify the given object', () => {
  const given = { ...definition, capabilities: { push_notifications: false } }
  resolveAgent(given)
  expect(given.capabilities).toEqual({ push_notifications: false })
})
