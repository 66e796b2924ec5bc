import { expect, test } from 'vitest'
import { analyseApart } from './analysis.ts'
import { sales } from './sample-tables.ts'

const never = new AbortController().signal
const request = { csv: sales, name: 'table', question: 'sales by month' }

test('the child process returns the analysis and its pictures', async () => {
  const answered = await analyseApart(request, never)
  expect(answered).toMatchObject({
    kind: 'answer',
    chart: { kind: 'line' },
    pictures: { svg: expect.stringContaining('<svg') },
  })
})

test('declines an analysis that takes too long and gives the reason', async () => {
  expect(await analyseApart(request, never, { timeoutMs: 1 })).toMatchObject({
    kind: 'decline',
    reason: expect.stringContaining('takes longer'),
  })
})

test('declines an analysis that needs too much memory and gives the reason', async () => {
  const csv = `a,b,c,d\n${Array.from({ length: 150_000 }, (_none, at) => `${at}.5,name ${at},x${at},${at % 7}`).join('\n')}`
  const answered = await analyseApart({ ...request, csv }, never, { memoryMb: 24 })
  expect(answered).toMatchObject({ kind: 'decline', reason: expect.stringContaining('memory') })
})

test('an aborted signal terminates the analysis', async () => {
  const stop = new AbortController()
  const running = analyseApart(request, stop.signal)
  stop.abort(new Error('canceled'))
  await expect(running).rejects.toThrow('canceled')
})
