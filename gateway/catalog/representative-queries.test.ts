import { expect, test } from 'vitest'
import { representativeQueries } from './representative-queries.ts'

const skill = (name: string, description: string, examples: unknown[] = []) => ({
  id: name,
  name,
  description,
  tags: [],
  input_modes: [],
  output_modes: [],
  examples: examples as string[],
})
const queriesOf = (skills: ReturnType<typeof skill>[], description = 'Helps. Really.') =>
  representativeQueries({ name: 'helper', description, skills })

test('the queries are the examples of the skills in turn, five at most and each once', () => {
  const skills = [skill('a', '', ['a1', 'a2', 'a3']), skill('b', '', ['b1', 'a1', 'b2']), skill('c', '', [])]
  expect(queriesOf(skills)).toEqual(['a1', 'b1', 'a2', 'a3', 'b2'])
})

test('names and the first sentences of descriptions complete fewer than two examples', () => {
  expect(queriesOf([skill('Sum up', 'Sums up a text. In few words.', ['shorten this'])])).toEqual([
    'shorten this',
    'Sums up a text',
    'Sum up',
    'Helps',
    'helper',
  ])
})

test('an agent with one text only has no queries, and malformed examples count as none', () => {
  expect(queriesOf([], 'helper')).toBeUndefined()
  expect(queriesOf([skill('', '', [7, null])], '')).toBeUndefined()
})
