import { expect, test } from 'vitest'
import { gatewayTools, toolNameOf } from './tool-names.ts'

const accepted = /^[A-Za-z0-9_-]{1,64}$/

test('the name of a tool is {slug}__{skill}, and the skill at the address of the agent', () => {
  expect(toolNameOf('weather', 'daily_forecast')).toBe('weather__daily_forecast')
  expect(toolNameOf(undefined, 'daily_forecast')).toBe('daily_forecast')
  expect(toolNameOf(undefined, 'list_capabilities')).toBe('list_capabilities')
})

test.each([
  ['other characters', 'a b/c'],
  ['another script', 'прогноз'],
  ['too many characters', 'x'.repeat(200)],
  ['only separators', '///'],
  ['a name of the gateway', 'get_task'],
])('an ID with %s has a hash in its name', (_what, skill) => {
  const name = toolNameOf(undefined, skill)
  expect(name).toMatch(accepted)
  expect(name).toMatch(/_[0-9][0-9a-z]{11}$/)
  expect(toolNameOf(undefined, skill)).toBe(name)
})

test('no two skills have the same name', () => {
  const long = 'y'.repeat(80)
  const taken = toolNameOf('a', `${long}1`).slice('a__'.length)
  const pairs: [string | undefined, string][] = [
    ['a', 'b c'],
    ['a', 'b_c'],
    ['a', 'b/c'],
    ['a', '_b'],
    ['a-', 'b'],
    ['a', `${long}1`],
    ['a', `${long}2`],
    ['a', taken],
    ...gatewayTools.map((name): [undefined, string] => [undefined, name]),
  ]
  const names = pairs.map(([slug, skill]) => toolNameOf(slug, skill))
  expect(new Set([...names, ...gatewayTools]).size).toBe(names.length + gatewayTools.length)
})
