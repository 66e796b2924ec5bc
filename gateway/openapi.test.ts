import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { testAgent } from '@parley/agent/testing'
import { templateOf } from '@parley/kit/http/path-pattern'
import { type DescribedRoute, recordedRoutes } from '@parley/kit/http/route-description'
import { price } from '@parley/tools/testing/paid-agent'
import { Validator } from '@seriousme/openapi-schema-validator'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { agent, embeddedOAuth, gateway, gatewayForEachTest, restart } from './testing.ts'

/** The servers that the test has started. */
let servers: FastifyInstance[] = []
const note = (message: unknown) => servers.push((message as { fastify: FastifyInstance }).fastify)
beforeAll(() => subscribe('fastify.initialization', note))
afterAll(() => unsubscribe('fastify.initialization', note))
beforeEach(() => {
  servers = []
})

gatewayForEachTest()

interface Document {
  openapi: string
  servers: { url: string }[]
  paths: Record<string, Record<string, { operationId: string }>>
}

async function documentAt(url: string, headers: Record<string, string> = {}): Promise<Document> {
  const response = await fetch(`${url}/openapi.json`, { headers })
  expect(response.status).toBe(200)
  return (await response.json()) as Document
}

/** The routes of the server that was started last. */
const routes = () => servers.slice(-1).flatMap((app) => recordedRoutes(app))
const undescribed = () =>
  routes()
    .filter(({ description }) => description === undefined)
    .map(({ methods, path }) => `${methods.join(',')} ${path}`)

/** Every operation of the routes, by path and method. */
async function operationsOf(all: readonly DescribedRoute[]): Promise<string[]> {
  const found = all.map(async ({ path, methods, description }) => {
    const described = typeof description === 'function' ? await description() : description
    if (described === undefined) return []
    if ('covers' in described)
      return Object.entries(described.covers).flatMap(([to, by]) =>
        Object.keys(by).map((verb) => `${verb} ${to}`),
      )
    return methods.map((method) => `${method.toLowerCase()} ${templateOf(path, described.wildcard)}`)
  })
  return [...new Set((await Promise.all(found)).flat())].sort()
}

const documented = ({ paths }: Document) =>
  Object.entries(paths)
    .flatMap(([path, item]) => Object.keys(item).map((verb) => `${verb} ${path}`))
    .sort()

async function requireValid(document: Document): Promise<void> {
  expect(await new Validator().validate({ ...document })).toEqual({ valid: true })
  const ids = Object.values(document.paths).flatMap((item) =>
    Object.values(item).map((one) => one.operationId),
  )
  expect(ids).toHaveLength(new Set(ids).size)
}

test('/openapi.json of the gateway is valid and describes every route and no other', async () => {
  await restart(embeddedOAuth)
  const document = await documentAt(gateway().addresses.public)
  expect(undescribed()).toEqual([])
  expect(documented(document)).toEqual(await operationsOf(routes()))
  await requireValid(document)
})

test('/openapi.json of a gateway with an external OAuth server describes every route', async () => {
  const document = await documentAt(gateway().addresses.public)
  expect(undescribed()).toEqual([])
  expect(documented(document)).toEqual(await operationsOf(routes()))
})

test.each([
  ['free', {}],
  ['paid', { price }],
])('/openapi.json of a %s agent is valid and describes every route and no other', async (_, more) => {
  await using server = await testAgent({ handle: () => 'done', ...more })
  const document = await documentAt(server.url)
  expect(undescribed()).toEqual([])
  expect(documented(document)).toEqual(await operationsOf(routes()))
  await requireValid(document)
})

test('the operations that a wildcard route covers exist', async () => {
  await restart(embeddedOAuth)
  const { paths } = await documentAt(gateway().addresses.public)
  const covered = Object.entries(paths).filter(([path]) => path.startsWith('/oauth2/'))
  const answers = covered.flatMap(([path, item]) =>
    Object.keys(item).map(async (method) => {
      const url = gateway().addresses.public + path.replaceAll(/\{\w+\}/g, 'none')
      const response = await fetch(url, { method, redirect: 'manual' })
      return { path, method, text: await response.text() }
    }),
  )
  const missing = (await Promise.all(answers)).filter(({ text }) => text.includes('no such endpoint'))
  expect(missing).toEqual([])
})

test('/agents/{slug}/openapi.json is the document of the agent with its address at the gateway', async () => {
  await using server = await testAgent({ handle: () => 'done' }, { env: { TRUSTED_PROXIES: '127.0.0.1' } })
  const { port } = new URL(server.url)
  const { slug } = await agent('poet', 'Writes poems', { url: `http://127.0.0.1:${port}` })
  const own = await documentAt(server.url)
  expect(own.servers).toEqual([{ url: server.url }])
  const url = `${gateway().addresses.public}/agents/${slug}`
  expect(await documentAt(url)).toEqual({ ...own, servers: [{ url }] })
})
