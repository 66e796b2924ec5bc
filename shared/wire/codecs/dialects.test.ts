import { expect, test } from 'vitest'
import { operations } from '../model/operation.ts'
import { cardPaths, defaultDialect, dialectOf, dialects, rpcPaths } from './dialects.ts'

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

test('JSON-RPC paths are unique, and a path that names a method belongs to a dialect that has the method', () => {
  const paths = rpcPaths()
  expect(new Set(paths.map(({ path }) => path)).size).toBe(paths.length)
  const unknown = paths.filter(
    ({ path, method }) => method !== undefined && !dialectOf({ path, headers: {} }).methods.has(method),
  )
  expect(unknown).toEqual([])
})
