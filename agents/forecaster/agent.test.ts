import { readFileSync } from 'node:fs'
import path from 'node:path'
import { testAgent } from '@parley/agent/testing'
import { TestWallet } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import agent from './agent.ts'

const wallet = new TestWallet()
const pay = () => wallet.header({ payTo: '0x000000000000000000000000000000000000dEaD' })
const skill = {
  id: 'forecast-series',
  name: 'Forecast',
  description: 'Forecasts',
  inputModes: ['*/*'],
  outputModes: ['*/*'],
}
const server = () => testAgent({ ...agent, skills: [skill] })
const csv = Array.from(
  { length: 36 },
  (_, at) =>
    `${2023 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')},${100 + at + 20 * Math.sin(at / 2)}`,
)
const table = ['month,sales', ...csv].join('\n')

test('a paid forecast returns findings, figures, a PDF report and a CSV file', async () => {
  await using forecaster = await server()
  const alice = forecaster.caller('alice')
  await expect(alice.send(table)).rejects.toMatchObject({ status: 402 })
  const parts = [
    {
      kind: 'file',
      file: { name: 'sales.csv', mimeType: 'text/csv', bytes: Buffer.from(table).toString('base64') },
    },
  ] as const
  const sent = await alice.send({ text: 'the next 6 months', parts: [...parts] }, undefined, {
    headers: await pay(),
  })
  const task = await alice.wait(sent.id)
  expect(task.status.state).toBe('completed')
  const said = task.artifacts.flatMap((artifact) => artifact.parts)
  const files = said.flatMap((part) => (part.kind === 'file' ? [part.file] : []))
  expect(files.map(({ name }) => name)).toEqual(['forecast.pdf', 'forecast.csv'])
  const [pdf = '', numbers = ''] = files.map((file) =>
    Buffer.from('bytes' in file ? (file.bytes ?? '') : '', 'base64').toString('latin1'),
  )
  expect(pdf).toMatch(/^%PDF-/)
  expect(numbers.trim().split('\n')).toHaveLength(7)
  expect(JSON.stringify(said)).toContain('2026-06')
})

test('reports a shortened horizon, and the other columns that it can forecast', async () => {
  await using forecaster = await server()
  const [header, ...rows] = table.split('\n')
  const wide = [`${header},cost`, ...rows.map((row) => `${row},5`)].join('\n')
  const sent = await forecaster.caller('alice').send(`the next 4 years\n${wide}`, undefined, {
    headers: await pay(),
  })
  const task = await forecaster.caller('alice').wait(sent.id)
  const [words] = task.artifacts.flatMap(({ parts }) => parts)
  expect(words).toMatchObject({ text: expect.stringContaining('48 months were requested. 18 are forecast') })
  expect(words).toMatchObject({ text: expect.stringContaining('"column cost" forecasts that one') })
})

test('requests another table for an unreadable one without charging twice', async () => {
  await using forecaster = await server()
  const alice = forecaster.caller('alice')
  const sent = await alice.send('month,sales\n2026-01,1\n2026-02,2\n2026-04,3', undefined, {
    headers: await pay(),
  })
  const asked = await alice.wait(sent.id)
  expect(asked.status).toMatchObject({ state: 'input-required' })
  const task = await alice.sendAndWait({ text: table, taskId: asked.id })
  expect(task.status.state).toBe('completed')
})

test('accepts a corrected table as a file, and sums duplicate dates after the answer yes', async () => {
  await using forecaster = await server()
  const alice = forecaster.caller('alice')
  const sent = await alice.send(
    { parts: [{ kind: 'data', data: { csv: 'month,sales\n2026-01,1\n2026-02,2\n2026-04,3' } }] },
    undefined,
    { headers: await pay() },
  )
  expect((await alice.wait(sent.id)).status).toMatchObject({ state: 'input-required' })
  const [header, ...rows] = table.split('\n')
  const twice = [header, ...rows, ...rows].join('\n')
  const file = { name: 'sales.csv', mimeType: 'text/csv', bytes: Buffer.from(twice).toString('base64') }
  const asked = await alice.sendAndWait({ parts: [{ kind: 'file', file }], taskId: sent.id })
  expect(asked.status).toMatchObject({
    state: 'input-required',
    message: {
      parts: [{ text: expect.stringMatching(/2 rows have the date 2023-01-01.*costs nothing more/) }],
    },
  })
  const task = await alice.sendAndWait({ text: 'yes', taskId: sent.id })
  expect(task.status.state).toBe('completed')
  const [figures] = task.artifacts
    .flatMap(({ parts }) => parts)
    .flatMap((part) => (part.kind === 'data' ? [part.data] : []))
  expect(figures).toMatchObject({ column: 'sales', unit: 'month' })
})

test('settings.json lists every setting that is read', () => {
  const text = readFileSync(path.join(import.meta.dirname, 'settings.json'), 'utf8')
  const { env, meaning } = JSON.parse(text) as { env: string[]; meaning: Record<string, string> }
  const source = readFileSync(path.join(import.meta.dirname, 'price.ts'), 'utf8')
  const read = [...source.matchAll(/said\('([A-Z_]+)'\)/g)].map(([, name]) => `FORECASTER_${name}`)
  expect([...new Set(read)].sort()).toEqual(env.toSorted())
  expect(Object.keys(meaning)).toEqual(env)
})
