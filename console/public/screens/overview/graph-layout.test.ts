import { expect, test } from 'vitest'
import { layOut, others } from './graph-layout.js'

const call = (from: string, to: string, count = 1) => ({ from, to, count, errors: 0, p50_ms: null })

test('each agent is to the right of the agents that call it', () => {
  const { nodes } = layOut([call('callers', 'a'), call('a', 'b'), call('callers', 'b'), call('b', 'c')])
  const columns = Object.fromEntries(nodes.map(({ id, column }) => [id, column]))
  expect(columns).toEqual({ callers: 0, a: 1, b: 2, c: 3 })
})

test('agents that call each other, or themselves, have a place', () => {
  const { nodes, columns } = layOut([call('a', 'b'), call('b', 'a'), call('b', 'b')])
  expect(nodes.map(({ id }) => id).sort()).toEqual(['a', 'b'])
  expect(columns).toBe(2)
})

test('of many agents, the busiest are shown, and the others are one node with their sums', () => {
  const calls = Array.from({ length: 50 }, (_, index) => call('callers', `agent-${index}`, 100 - index))
  const { nodes, edges } = layOut(calls, { nodesMax: 16 })
  expect(nodes).toHaveLength(18)
  expect(nodes.find(({ id }) => id === others)).toMatchObject({ members: 34 })
  expect(edges.reduce((sum, { count }) => sum + count, 0)).toBe(
    calls.reduce((sum, { count }) => sum + count, 0),
  )
})
