import { expect, test } from 'vitest'
import type { AgentEntry } from './entry.ts'
import { lookAlikes, requireDistinct } from './look-alikes.ts'

const skill = {
  id: 'calculate',
  name: 'Calculate',
  description: 'Works out expressions with numbers, units and matrices, exactly and step by step',
  tags: ['math', 'units', 'matrix'],
  input_modes: [],
  output_modes: [],
}
const calculator = {
  id: '1',
  slug: 'calculator',
  name: 'calculator',
  description: 'Calculates expressions, units and matrices',
  skills: [skill],
  owner: 'supervisor',
  url: 'http://a',
  admitted: true,
  verified: true,
} as unknown as AgentEntry
const other = {
  id: '2',
  name: 'other',
  description: 'Draws pictures of cats in the style of old masters',
  skills: [{ ...skill, description: 'Draws a picture of a cat', tags: ['cat'] }],
  owner: 'mallory',
  url: 'http://b',
  verified: false,
}

test.each([
  'calcu1ator',
  'саlсulаtоr',
  'Calculator',
  'CaIculator',
  'cal-culator',
  'calculätor',
  'ｃａｌｃｕｌａｔｏｒ',
  'calculat0r',
])('the name %s is confusable with calculator', (name) => {
  expect(lookAlikes({ ...other, name }, [calculator])).toEqual([{ agent: 'calculator', because: 'name' }])
})

test.each(['calculus', 'calendar', 'sums', 'калькулятор'])(
  'the name %s is not confusable with calculator',
  (name) => {
    expect(lookAlikes({ ...other, name }, [calculator])).toEqual([])
  },
)

test('a copy of the skills with more tags is near-identical and is refused if unverified', () => {
  const tags = [...skill.tags, 'sum', 'add', 'plus', 'minus', 'percent']
  const copy = { ...other, name: 'sums', description: calculator.description, skills: [{ ...skill, tags }] }
  expect(lookAlikes(copy, [calculator])).toEqual([{ agent: 'calculator', because: 'card' }])
  expect(() => requireDistinct(copy, [calculator])).toThrow(/nearly identical to that of agent calculator/)
  expect(() => requireDistinct({ ...copy, verified: true }, [calculator])).not.toThrow()
})

test.each<[string, (text: string) => string]>([
  ['with the words in another order', (text) => text.split(' ').reverse().join(' ')],
  ['with a word inserted between any two', (text) => text.split(' ').join(' also ')],
  ['with confusable letters', (text) => text.replaceAll('a', 'а').replaceAll('e', 'е').replaceAll('o', 'о')],
  ['with invisible characters', (text) => text.replaceAll('a', 'a\u00ad').replaceAll('i', 'i\u200b')],
  ['with one word in eight replaced', (text) => text.replace('units', 'measures')],
])('a copy of a card %s is near-identical', (_what, edit) => {
  const description = edit(calculator.description)
  const copy = {
    ...other,
    name: 'sums',
    description,
    skills: [
      { ...skill, name: edit(skill.name), description: edit(skill.description), tags: skill.tags.map(edit) },
    ],
  }
  expect(lookAlikes(copy, [calculator])).toEqual([{ agent: 'calculator', because: 'card' }])
})

test('an agent with a similar purpose in different words is not near-identical', () => {
  const description = 'Solves equations and evaluates formulas with numbers, percentages and currencies'
  const own = { ...other, name: 'sums', description, skills: [{ ...skill, name: 'Solve', description }] }
  expect(lookAlikes(own, [calculator])).toEqual([])
})

test('an agent is compared only with admitted agents that have other owners', () => {
  const named = { ...other, name: 'calculator' }
  expect(lookAlikes(named, [{ ...calculator, admitted: false }])).toEqual([])
  expect(lookAlikes({ ...named, owner: 'supervisor' }, [calculator])).toEqual([])
  expect(() => requireDistinct(other, [calculator])).not.toThrow()
})
