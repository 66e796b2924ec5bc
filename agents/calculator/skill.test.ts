import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const folder = path.join(import.meta.dirname, 'skills')
const files = readdirSync(folder).sort()

test('the skill files are complete', () => {
  expect(files).toEqual(['calculate.md', 'convert-units.md', 'matrices.md'])
})

test.each(files)('%s contains the information that callers need to choose it', (file) => {
  const [, matter = '', documentation = ''] = readFileSync(path.join(folder, file), 'utf8').split(/^---$/m)
  expect(parse(matter)).toMatchObject({
    id: path.parse(file).name,
    name: expect.any(String),
    description: expect.stringMatching(/^.{150,}$/s),
    tags: expect.arrayContaining([expect.any(String)]),
    input_modes: expect.arrayContaining(['text/plain']),
    output_modes: expect.arrayContaining(['application/json']),
    performance: { avg_processing_time_ms: expect.any(Number) },
    assessment: { keywords: expect.arrayContaining([expect.any(String)]) },
  })
  const { examples } = parse(matter) as { examples: unknown[] }
  expect(examples.length).toBeGreaterThan(4)
  expect(examples.every((example) => typeof example === 'string')).toBe(true)
  expect(documentation.trim()).toMatch(/^# /)
})
