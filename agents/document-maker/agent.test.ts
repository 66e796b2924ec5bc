import { readdirSync, readFileSync } from 'node:fs'
import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import agent from './agent.ts'
import { png } from './testing.ts'

const markdownFile = (name: string, text: string, mimeType = 'text/markdown') =>
  ({ kind: 'file', file: { name, mimeType, bytes: Buffer.from(text).toString('base64') } }) as const

function pdfOf(task: { artifacts: { parts: { kind: string; file?: { bytes?: string } }[] }[] }): string {
  const part = task.artifacts.flatMap(({ parts }) => parts).find(({ kind }) => kind === 'file')
  return Buffer.from(part?.file?.bytes ?? '', 'base64').toString('latin1')
}

test('converts Markdown to a PDF file named after its title', async () => {
  await using server = await testAgent(agent)
  const task = await server
    .caller('alice')
    .sendAndWait('Turn this into a PDF: # Third Quarter\n\nAll is well.')
  expect(task.status.state).toBe('completed')
  expect(task.artifacts.map(({ name }) => name)).toEqual(['result', 'third-quarter.pdf'])
  expect(task.artifacts[0]?.parts).toMatchObject([{ kind: 'text', text: 'third-quarter.pdf: 1 page.' }])
  expect(pdfOf(task)).toMatch(/^%PDF-/)
})

test('asks for a missing text and typesets the answer', async () => {
  await using server = await testAgent(agent)
  const alice = server.caller('alice')
  const asked = await alice.sendAndWait('Make me a PDF, please')
  expect(asked.status.state).toBe('input-required')
  const task = await alice.sendAndWait({ text: '# Answer', taskId: asked.id })
  expect(task.status.state).toBe('completed')
  expect(task.artifacts.map(({ name }) => name)).toContain('answer.pdf')
})

test('reads a text, a referenced image and a title from files and data parts', async () => {
  await using server = await testAgent(agent)
  const plan = {
    kind: 'file',
    file: { name: 'plan.png', mimeType: 'image/png', bytes: png(20, 10).toString('base64') },
  } as const
  const parts = [
    { kind: 'data', data: { title: 'The Plan', page_size: 'letter' } } as const,
    markdownFile('a.md', 'Here it is:\n\n![The plan](plan.png)'),
    plan,
  ]
  const task = await server.caller('alice').sendAndWait({ parts })
  expect(task.artifacts.map(({ name }) => name)).toContain('the-plan.pdf')
  expect(pdfOf(task)).toMatch(/\/MediaBox \[0 0 612 792\]/)
  expect(pdfOf(task)).toMatch(/\/Subtype \/Image/)
})

test('makes a report from the results of referenced tasks', async () => {
  await using server = await testAgent(agent)
  const alice = server.caller('alice')
  const first = await alice.sendAndWait('# One\n\ntext')
  const report = await alice.sendAndWait({ text: 'Make a report of this', referenceTaskIds: [first.id] })
  expect(report.status.state).toBe('completed')
  expect(pdfOf(report)).toMatch(/^%PDF-/)
})

test.each([
  ['another type of file', [markdownFile('a.docx', 'x', 'application/msword')], /a\.docx is none of them/],
  [
    'a page size of its own',
    [{ kind: 'data', data: { page_size: 'a0' } }],
    /page_size: must be a4 or letter/,
  ],
  ['more than 2 MB', [{ kind: 'text', text: 'word '.repeat(450_000) }], /up to 2 MB/],
  ['more than 500 pages', [{ kind: 'text', text: 'a\n\n'.repeat(20_000) }], /more than 500 pages/],
])('declines %s and gives the reason', async (_, parts, reason) => {
  await using server = await testAgent(agent)
  const task = await server.caller('alice').sendAndWait({ parts: parts as never })
  expect(task.status.state).toBe('rejected')
  expect(JSON.stringify(task.status.message)).toMatch(reason)
})

test('the skill files are complete', () => {
  const folder = new URL('skills/', import.meta.url)
  for (const name of readdirSync(folder)) {
    const [, matter = '', documentation = ''] = readFileSync(new URL(name, folder), 'utf8').split(/^---$/m)
    const skill = parse(matter) as Record<string, unknown>
    const fields = [
      'name',
      'description',
      'tags',
      'input_modes',
      'output_modes',
      'examples',
      'performance',
      'assessment',
    ]
    expect(Object.keys(skill)).toEqual(expect.arrayContaining(fields))
    for (const example of skill['examples'] as unknown[]) expect(example).toBeTypeOf('string')
    expect(documentation.trim()).toMatch(/^# /)
  }
})
