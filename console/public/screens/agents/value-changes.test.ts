import { expect, test } from 'vitest'
import { valueChanges } from './value-changes.js'

test('equal values have no changes', () => {
  expect(valueChanges({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([])
})

test('fields are compared one by one', () => {
  const before = { price: { amount: '0.01', asset: 'x' }, url: 'u' }
  expect(valueChanges(before, { price: { amount: '0.05', asset: 'x' }, name: 'n' })).toEqual([
    { path: 'price.amount', before: '0.01', after: '0.05' },
    { path: 'url', before: 'u', after: undefined },
    { path: 'name', before: undefined, after: 'n' },
  ])
})

test('lists of texts are compared as sets, and other lists by the id of their entries', () => {
  const before = { tags: ['a', 'b'], skills: [{ id: 's', name: 'old' }] }
  const after = { tags: ['b', 'c'], skills: [{ id: 't' }, { id: 's', name: 'new' }] }
  expect(valueChanges(before, after)).toEqual([
    { path: 'tags.a', before: 'a', after: undefined },
    { path: 'tags.c', before: undefined, after: 'c' },
    { path: 'skills.s.name', before: 'old', after: 'new' },
    { path: 'skills.t', before: undefined, after: { id: 't' } },
  ])
})

test('lists without ids are compared as a whole', () => {
  expect(valueChanges({ a: [1, 2] }, { a: [2] })).toEqual([{ path: 'a', before: [1, 2], after: [2] }])
})

test('the number of changes is bounded', () => {
  const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`f${index}`, index]))
  expect(valueChanges({}, many)).toHaveLength(200)
})
