import { wireObject } from '@parley/wire/codecs/parley/spelling'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'
import { makeLog } from '../process/log.ts'
import { createMetrics } from '../process/metrics.ts'
import { addOpenApiRoute } from './openapi-route.ts'
import type { OperationDescription } from './route-description.ts'
import { createServer } from './server.ts'

const read: OperationDescription = {
  summary: 'Read a parcel',
  tag: 'tasks',
  access: 'agent:read',
  params: z.object({ id: z.uuid() }),
  query: z.object({ limit: z.coerce.number().int().min(1).max(9).default(3) }),
  responses: { 200: { description: 'The parcel', json: z.object({ parcel_id: z.uuid() }) } },
  errors: [['Conflict', 412]],
}

const send: OperationDescription = {
  summary: 'Send a parcel',
  tag: 'tasks',
  access: 'public',
  body: { json: wireObject({ parcelId: z.uuid(), weight: z.int().optional() }) },
  responses: { 201: { description: 'Sent' } },
}

let app: FastifyInstance
beforeEach(async () => {
  app = createServer({ log: makeLog({ name: 'test', level: 'silent' }), metrics: createMetrics() })
  app.get('/parcels/:id(^[^:]+)::read', { config: { api: read } }, async () => ({}))
  app.post('/parcels', { config: { api: async () => send } }, async () => ({}))
  const covered = { '/mail/in': { get: { ...send, body: {} } }, '/mail/out': { post: send } }
  app.all('/mail/*', { config: { api: () => ({ covers: covered }) } }, async () => ({}))
  addOpenApiRoute(app, { title: 'Post', description: '', version: '1', address: () => 'http://post.example' })
  await app.ready()
})
afterEach(() => app.close())

const get = (headers = {}) => app.inject({ url: '/openapi.json', headers })
const document = async () => (await get()).json()

test('/openapi.json lists the routes with their paths, parameters, scopes and the address of the server', async () => {
  const { openapi, servers, paths } = await document()
  expect(openapi).toBe('3.1.1')
  expect(servers).toEqual([{ url: 'http://post.example' }])
  expect(Object.keys(paths)).toEqual([
    '/mail/in',
    '/mail/out',
    '/openapi.json',
    '/parcels',
    '/parcels/{id}:read',
  ])
  const operation = paths['/parcels/{id}:read'].get
  expect(operation.security).toEqual([{ bearer: ['agent:read'] }, { dpop: ['agent:read'] }])
  expect(operation.parameters).toMatchObject([
    { in: 'path', name: 'id', required: true, schema: { type: 'string', format: 'uuid' } },
    { in: 'query', name: 'limit', schema: { type: 'integer', minimum: 1, maximum: 9, default: 3 } },
  ])
})

test('the fields of a body have their names on the wire', async () => {
  const { paths } = await document()
  const { schema } = paths['/parcels'].post.requestBody.content['application/json']
  expect(Object.keys(schema.properties)).toEqual(['parcel_id', 'weight'])
  expect(schema.required).toEqual(['parcel_id'])
})

test('an operation lists its errors by status, with the codes of the error table', async () => {
  const { paths, components } = await document()
  const { responses } = paths['/parcels/{id}:read'].get
  expect(Object.keys(responses)).toEqual([
    '200',
    '400',
    '401',
    '403',
    '404',
    '412',
    '413',
    '429',
    '431',
    '500',
    '503',
  ])
  const { error } =
    components.responses[responses[401].$ref.split('/').at(-1)].content['application/json'].schema.properties
  expect(error.properties.code.enum).toEqual([-32009, -32010, -32011])
})

test('a request for the current version of the document is answered with 304', async () => {
  const { etag } = (await get()).headers
  expect((await get({ 'if-none-match': etag })).statusCode).toBe(304)
})
