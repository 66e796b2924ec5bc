import { expect, test } from 'vitest'
import { operations } from '../model/operation.ts'
import { interfacesAt } from './a2a-card.ts'
import {
  cardPaths,
  defaultDialect,
  dialectNamed,
  dialectOf,
  dialects,
  methodNotFound,
  rpcPaths,
} from './dialects.ts'

test('each dialect has a unique name and one main method name for each operation that it has', () => {
  expect(new Set(dialects.map(({ name }) => name)).size).toBe(dialects.length)
  for (const dialect of dialects)
    for (const [method, { operation }] of dialect.methods) {
      expect(Object.keys(operations)).toContain(operation)
      expect(dialect.methods.get(dialect.methodOf(operation))?.operation).toBe(operation)
      expect(method).not.toBe('')
    }
})

test('the path selects the dialect of a request, and that dialect rejects unknown methods', () => {
  for (const { path } of rpcPaths())
    expect(dialectOf({ path, headers: {} }).accepts({ path, headers: {} })).toBe(true)
  for (const path of cardPaths()) expect(dialectOf({ path, headers: {} }).cardPaths).toContain(path)
  expect(dialectOf({ path: '/', headers: {}, method: 'tasks/fly' })).toBe(defaultDialect)
  expect(dialectOf({ path: '/nowhere', headers: {} })).toBe(defaultDialect)
})

test.each([
  ['message/send', 'a2a-v1', 'message/send is a method of A2A 0.3, which is served at /a2a/v0.3'],
  ['SendMessage', 'a2a-v0.3', 'SendMessage is a method of A2A 1.0, which is served at /a2a/v1'],
  ['tasks/list', 'a2a-v0.3', 'tasks/list is a method of Parley, which is served at /'],
])('the error for %s in %s names the dialect that has it', (method, dialect, message) => {
  expect(methodNotFound(method, dialectNamed(dialect)).message).toBe(`Method not found: ${message}`)
  expect(methodNotFound('x\n', dialectNamed(dialect)).message).toBe('Method not found')
})

test('JSON-RPC paths are unique, and a path that names a method belongs to a dialect that has the method', () => {
  const paths = rpcPaths()
  expect(new Set(paths.map(({ path }) => path)).size).toBe(paths.length)
  const unknown = paths.filter(
    ({ path, method }) => method !== undefined && !dialectOf({ path, headers: {} }).methods.has(method),
  )
  expect(unknown).toEqual([])
})

test('every interface in a card is an address that a dialect serves', () => {
  const base = 'https://example.com/agents/x'
  const rpc = new Set(rpcPaths().map(({ path }) => path))
  const rest = dialects.flatMap((dialect) => dialect.rest?.routes.map(({ path }) => path) ?? [])
  for (const { url, protocolBinding } of interfacesAt(`${base}/`)) {
    const path = url.slice(base.length)
    const isServed = protocolBinding === 'JSONRPC' ? rpc.has(path) : rest.includes(`${path}/message::send`)
    expect([url, isServed]).toEqual([url, true])
  }
})

test('no two REST routes have the same verb and path', () => {
  const routes = dialects.flatMap(
    (dialect) => dialect.rest?.routes.map(({ verb, path }) => `${verb} ${path}`) ?? [],
  )
  expect(routes.length).toBeGreaterThan(0)
  expect(new Set(routes).size).toBe(routes.length)
})
