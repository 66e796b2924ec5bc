import { expect, test } from 'vitest'
import type { PushConfigState } from '../../model/call.ts'
import { idsOf } from '../../model/ids.ts'
import { readParams, writeResult } from './methods.ts'

const ids = idsOf('alice')
const taskId = '01a20384-dd0f-75de-ac3f-6eb02a231f82'
const url = 'https://r.example'
const set = (pushNotificationConfig: object) =>
  readParams('setPushConfig', { taskId, pushNotificationConfig }, ids).pushNotificationConfig
const written = (config: Partial<PushConfigState>) =>
  JSON.parse(
    JSON.stringify(
      writeResult('setPushConfig', {
        id: 'config',
        url,
        task: { id: taskId },
        longRunning: false,
        health: { attempts: 0, delivered: 0, dropped: {} },
        ...config,
      }).json,
    ),
  )

test('a webhook without an ID has the ID of its task', () => {
  expect(set({ url })).toEqual({ id: taskId, url, dialect: 'a2a-v0.3' })
  expect(set({ id: '', url, token: '', authentication: null })).toEqual(set({ url }))
})

test('the ID of a webhook may have any characters', () => {
  expect(set({ id: 'my/hook', url })).toMatchObject({ id: ids('my/hook').id, name: 'my/hook' })
  expect(written({ id: ids('my/hook').id, name: 'my/hook' })).toEqual({
    taskId,
    pushNotificationConfig: { id: 'my/hook', url },
  })
})

test('credentials are kept apart from the schemes and returned with them', () => {
  const authentication = { schemes: ['an odd one', 'Bearer', 'Basic'], credentials: 'secret' }
  const config = set({ url, authentication })
  expect(config).toMatchObject({
    authentication: { schemes: authentication.schemes },
    credentials: { scheme: 'Bearer', credentials: 'secret' },
  })
  expect(JSON.stringify(config.authentication)).not.toContain('secret')
  expect(written({ ...config, id: taskId }).pushNotificationConfig).toEqual({
    id: taskId,
    url,
    authentication,
  })
})

test.each([[{ schemes: [] }], [{ schemes: ['Bearer'] }], [{ schemes: ['Bearer'], credentials: '' }]])(
  'the authentication %j has no credentials to send',
  (authentication) => {
    expect(set({ url, authentication }).credentials).toBeUndefined()
  },
)

test.each([
  [{ scheme: 'Bearer' }],
  [{ schemes: 'Bearer' }],
  [{ schemes: ['Bearer'], credentials: 'a\r\nX-Other: b' }],
])('the authentication %j is invalid', (authentication) => {
  expect(() => set({ url, authentication })).toThrow(expect.objectContaining({ error: 'InvalidParams' }))
})

test('the authentication of a webhook that was set in another dialect is written if this one has a form for it', () => {
  const { pushNotificationConfig: ofOpenApi } = written({
    authentication: { type: 'http', scheme: 'bearer' },
  })
  expect(ofOpenApi).toEqual({ id: 'config', url })
  const credentials = { scheme: 'Basic', credentials: 'secret' }
  expect(written({ credentials }).pushNotificationConfig.authentication).toEqual({
    schemes: ['Basic'],
    credentials: 'secret',
  })
})
