import fastify from 'fastify'
import { expect, test } from 'vitest'
import { idsOf } from '../../model/ids.ts'
import type { Operation } from '../../model/operation.ts'
import type { RestRoute } from '../codec.ts'
import { a2aV1 } from './dialect.ts'
import { rest } from './rest.ts'
import { taskId } from './sample.cases.ts'

const { routes, mediaType } = rest
const routesOf = (operation: Operation) => routes.filter((route) => route.operation === operation)

/** Answers each route with its operation and the params that it reads. */
function createServer() {
  const app = fastify()
  app.addContentTypeParser(mediaType, { parseAs: 'string' }, app.getDefaultJsonParser('error', 'error'))
  for (const route of routes)
    app.route({
      method: route.verb,
      url: route.path,
      handler: async (request) => ({
        operation: route.operation,
        params: route.params({
          path: { ...Object(request.params) },
          query: { ...Object(request.query) },
          body: request.body,
        }),
      }),
    })
  return app
}

type Case = [
  verb: RestRoute['verb'],
  url: string,
  body: object | undefined,
  operation: string,
  params: object,
]

const cases: Case[] = [
  ['POST', '/message:send', { message: {} }, 'sendMessage', { message: {} }],
  ['POST', '/message:stream', { message: {} }, 'streamMessage', { message: {} }],
  ['GET', `/tasks/${taskId}?historyLength=2`, undefined, 'getTask', { id: taskId, historyLength: '2' }],
  [
    'GET',
    '/tasks?contextId=a%2Fb&status=TASK_STATE_WORKING&pageSize=7&includeArtifacts=true&later=1',
    undefined,
    'listTasks',
    { contextId: 'a/b', status: 'TASK_STATE_WORKING', pageSize: '7', includeArtifacts: true, later: '1' },
  ],
  [
    'GET',
    '/tasks?status=2&include_artifacts=false',
    undefined,
    'listTasks',
    { status: 2, include_artifacts: false },
  ],
  ['POST', `/tasks/${taskId}:cancel`, undefined, 'cancelTask', { id: taskId }],
  [
    'POST',
    `/tasks/${taskId}:cancel`,
    { id: 'other', metadata: {} },
    'cancelTask',
    { id: taskId, metadata: {} },
  ],
  ['GET', `/tasks/${taskId}:subscribe`, undefined, 'resubscribe', { id: taskId }],
  ['POST', `/tasks/${taskId}:subscribe`, undefined, 'resubscribe', { id: taskId }],
  [
    'POST',
    `/tasks/${taskId}/pushNotificationConfigs`,
    { task_id: 'other', id: 'hook', url: 'https://e' },
    'setPushConfig',
    { taskId, id: 'hook', url: 'https://e' },
  ],
  [
    'GET',
    `/tasks/${taskId}/pushNotificationConfigs?pageSize=1`,
    undefined,
    'listPushConfigs',
    { taskId, pageSize: '1' },
  ],
  [
    'GET',
    `/tasks/${taskId}/pushNotificationConfigs/a%2Fb%00`,
    undefined,
    'getPushConfig',
    { taskId, id: 'a/b\u0000' },
  ],
  [
    'DELETE',
    `/tasks/${taskId}/pushNotificationConfigs/hook`,
    undefined,
    'deletePushConfig',
    { taskId, id: 'hook' },
  ],
  ['GET', '/extendedAgentCard', undefined, 'getExtendedCard', {}],
]

test.each(cases)(
  '%s %s has its operation, at the root, at the version and below a tenant',
  async (verb, url, body, operation, params) => {
    await using app = createServer()
    for (const [prefix, more] of [
      ['', {}],
      ['/a2a/v1', {}],
      ['/a2a/v1/calculator', { tenant: 'calculator' }],
    ] as const) {
      const headers = body === undefined ? {} : { 'content-type': mediaType }
      const answer = await app.inject({
        method: verb,
        url: prefix + url,
        headers,
        ...(body && { payload: JSON.stringify(body) }),
      })
      expect(answer.json()).toEqual({ operation, params: { ...params, ...more } })
    }
  },
)

test('each operation of the protocol has a REST route, and its params are read like those of JSON-RPC', () => {
  const ofRest = new Set(routes.map(({ operation }) => operation))
  for (const { operation } of a2aV1.methods.values()) expect(ofRest).toContain(operation)
  for (const list of routesOf('listTasks')) {
    const params = list.params({ path: {}, query: { pageSize: '7', status: '3' }, body: undefined })
    expect(a2aV1.readParams('listTasks', params, idsOf('c'))).toMatchObject({
      limit: 7,
      states: ['completed'],
    })
  }
})

test('a body that is not an object is refused', () => {
  for (const send of routesOf('sendMessage'))
    for (const body of [[], 'x', 7])
      expect(() => send.params({ path: {}, query: {}, body })).toThrow(
        expect.objectContaining({ error: 'InvalidParams' }),
      )
})
