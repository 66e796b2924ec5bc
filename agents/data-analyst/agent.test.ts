import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import agent from './agent.ts'
import { people, sales } from './sample-tables.ts'

const base64 = (text: string) => Buffer.from(text).toString('base64')
const csvFile = (text: string, name = 'sales.csv', mimeType = 'text/csv') => ({
  kind: 'file' as const,
  file: { name, mimeType, bytes: base64(text) },
})
const text = (said: string) => ({ kind: 'text' as const, text: said })

test('answers a file with a report, data and a chart as SVG and PNG', async () => {
  await using server = await testAgent(agent)
  const task = await server.caller('ann').sendAndWait({ parts: [text('what stands out?'), csvFile(sales)] })
  expect(task.status.state).toBe('completed')
  const parts = task.artifacts.flatMap((artifact) => artifact.parts)
  expect(parts.find((part) => part.kind === 'text')?.text).toMatch(
    /sales\.csv: 24 rows[\s\S]*clearly rises over Date/,
  )
  expect(parts.find((part) => part.kind === 'data')?.data).toMatchObject({
    rows: 24,
    chart: { kind: 'line' },
  })
  const files = parts.flatMap((part) => (part.kind === 'file' ? [part.file] : []))
  expect(files.map(({ name }) => name)).toEqual(['chart.svg', 'chart.png'])
  const [svg, png] = files.map(({ bytes }) => Buffer.from(bytes ?? '', 'base64'))
  expect(svg?.toString()).toMatch(/^<svg[\s\S]*Total Units by month/)
  expect(png?.subarray(1, 4).toString()).toBe('PNG')
})

test('asks which column to use, and accepts an answer without a table in the same task', async () => {
  await using server = await testAgent(agent)
  const ann = server.caller('ann')
  const asked = await ann.sendAndWait({ parts: [text('draw a histogram'), csvFile(people, 'people.csv')] })
  expect(asked.status.state).toBe('input-required')
  expect(JSON.stringify(asked.status.message)).toMatch(/1\. alter.*2\. größe/)
  const done = await ann.sendAndWait({
    parts: [text('the größe')],
    taskId: asked.id,
    contextId: asked.context_id,
  })
  expect(done.status.state).toBe('completed')
  expect(JSON.stringify(done.artifacts)).toContain('Distribution of größe')
  const next = await ann.sendAndWait({ parts: [text('alter vs größe')], contextId: asked.context_id })
  expect(JSON.stringify(next.artifacts)).toContain('alter and größe')
})
