import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

test('skills/chat.md has complete front matter and documentation', () => {
  const [, matter = '', documentation] = readFileSync(
    new URL('skills/chat.md', import.meta.url),
    'utf8',
  ).split(/^---$/m)
  const skill = parse(matter) as Record<string, unknown>
  expect(Object.keys(skill)).toEqual(
    expect.arrayContaining([
      'name',
      'description',
      'tags',
      'input_modes',
      'output_modes',
      'examples',
      'performance',
      'assessment',
    ]),
  )
  for (const example of skill['examples'] as unknown[]) expect(example).toBeTypeOf('string')
  expect(documentation?.trim()).toMatch(/^# Chat/)
})
