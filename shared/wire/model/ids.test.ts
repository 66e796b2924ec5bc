import { expect, test } from 'vitest'
import { idsOf } from './ids.ts'

const alice = idsOf('did:example:alice')

test('a UUID is kept, and one in upper case keeps its spelling as a name', () => {
  const id = '0192f0c0-7a3b-7c1d-8e2f-0a1b2c3d4e5f'
  expect(alice(id)).toEqual({ id })
  expect(alice(id.toUpperCase())).toEqual({ id, name: id.toUpperCase() })
})

test.each(['ctx-1', '', 'a/b', 'line\nbreak', 'uuid:uuid', '🦊'])(
  'the string %j becomes a UUID version 8, the same each time, and is kept as the name',
  (name) => {
    const given = alice(name)
    expect(given.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    expect(given.name).toBe(name)
    expect(alice(name)).toEqual(given)
  },
)

test('the UUID of a string never changes, because stores keep it', () => {
  expect(alice('ctx-1').id).toBe('969e6705-d0ff-8720-988c-2460e2e7b13a')
})

test('equal strings of two clients have different IDs', () => {
  expect(idsOf('did:example:bob')('ctx-1').id).not.toBe(alice('ctx-1').id)
})
