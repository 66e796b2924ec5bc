import type { HandlerContext } from '@parley/agent'
import { expect, test } from 'vitest'
import { ticksOf } from './chart.ts'
import { forecast } from './forecast.ts'
import { priceOf } from './price.ts'
import { horizonFor, readRequest, stepsOf } from './request.ts'
import { DuplicateDates, labelOf, readSeries, SeriesFault, timeAfter, type Unit } from './series.ts'

/** Five years of monthly values with a trend, seasonality and non-repeating noise. */
const monthly = Array.from({ length: 60 }, (_, at) => {
  const value = 200 + 2 * at + 40 * Math.sin((at / 12) * 2 * Math.PI) + 3 * Math.sin(at * 7.3)
  return `${2021 + Math.floor(at / 12)}-${String((at % 12) + 1).padStart(2, '0')},${value.toFixed(2)}`
})
const csv = (rows: string[], header = 'month,sales') => [header, ...rows].join('\n')

test('finds trend and seasonality, with a much smaller error than repeating the last value', () => {
  const known = readSeries(csv(monthly.slice(0, 48)))
  const { model, steps, trials } = forecast(known, 12)
  expect(model).toBe('trend and season')
  expect(trials[0]?.relative).toBeLessThan(0.5)
  const real = readSeries(csv(monthly)).values.slice(48)
  const inBand = steps.filter(({ low, high }, at) => low <= (real[at] ?? 0) && (real[at] ?? 0) <= high)
  expect(inBand.length).toBeGreaterThanOrEqual(8)
  expect(steps[0]?.period).toBe('2025-01')
})

test('uses the simplest model for values without a pattern, with an interval that never narrows', () => {
  let last = 100
  let seed = 7
  const walk = Array.from({ length: 40 }, (_, at) => {
    seed = (seed * 16_807) % 2_147_483_647
    last += (seed / 2_147_483_647 - 0.5) * 10
    return `${1980 + at},${last.toFixed(3)}`
  })
  const { model, steps } = forecast(readSeries(csv(walk, 'year,value')), 6)
  expect(['last value', 'straight drift']).toContain(model)
  const widths = steps.map(({ low, high }) => high - low)
  expect(widths).toEqual(widths.toSorted((a, b) => a - b))
})

test.each<[string, string[], string]>([
  ['day', ['2026-02-26', '2026-02-27', '2026-02-28'], '2026-03-01'],
  ['week', ['2026-11-02', '2026-11-09'], '2026-11-16'],
  ['month', ['2026-11', '2026-12'], '2027-01'],
  ['quarter', ['2026-Q3', '2026-Q4'], '2027-Q1'],
  ['year', ['2025', '2026'], '2027'],
])('labels the next steps of a %s series correctly', (unit, ends, next) => {
  const days = { day: 1, week: 7, month: 0, quarter: 0, year: 0 }[unit] ?? 0
  const before = (steps: number) => {
    const first = readFirst(ends[0] ?? '')
    if (days > 0) return new Date(first - steps * days * 86_400_000).toISOString().slice(0, 10)
    const months = { month: 1, quarter: 3, year: 12 }[unit] ?? 1
    const date = new Date(first)
    return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() - steps * months, 1))
      .toISOString()
      .slice(0, 10)
  }
  const dates = [...Array.from({ length: 8 }, (_, at) => before(8 - at)), ...ends]
  const series = readSeries(csv(dates.map((date, at) => `${date},${at}`)))
  expect(series.unit).toBe(unit)
  expect(labelOf(timeAfter(series, 1), series.unit)).toBe(next)
})

const readFirst = (text: string) => {
  const quarter = /^(\d{4})-Q(\d)$/.exec(text)
  return quarter ? Date.UTC(Number(quarter[1]), (Number(quarter[2]) - 1) * 3, 1) : Date.parse(text)
}

test.each<[string, string, RegExp]>([
  ['nothing', '', /No column has a date/],
  ['no CSV', 'a,b\n"x', /not a CSV table/],
  ['too few rows', csv(monthly.slice(0, 7)), /7 rows are too few/],
  ['a month missing', csv(monthly.filter((_, at) => at !== 9)), /one is missing/],
  ['a month twice', csv([...monthly, monthly[3] ?? '']), /2 rows have the date 2021-04-01.*add up sales/],
  [
    'a day that does not exist',
    csv(monthly.map((row) => row.replace('-01,', '-13,'))),
    /No column has a date/,
  ],
  ['texts for numbers', csv(monthly.map((row) => `${row}x`)), /has a number in every row/],
  ['too many rows', csv(Array.from({ length: 2001 }, () => '2026,1')), /more than 2000 rows/],
])('reports a table with %s', (_, table, said) => {
  expect(() => readSeries(table)).toThrow(SeriesFault)
  expect(() => readSeries(table)).toThrow(said)
})

test('selects a column by name, reads thousands and currencies, and detects delimiters', () => {
  const rows = monthly.map((row) => `${row.split(',')[0]};1;$12,345.5`)
  const table = csv(rows, 'month;one;Cost')
  expect(readSeries(table, { column: 'cost' }).values[0]).toBe(12_345.5)
  expect(() => readSeries(table, { column: 'profit' })).toThrow('there are: one, Cost')
})

test.each<[string, Unit, number | undefined]>([
  ['the next 6 months', 'month', 6],
  ['14 days ahead please', 'day', 14],
  ['12 steps ahead', 'week', 12],
  ['next 999 days', 'day', 999],
  ['next month', 'month', undefined],
  ['the next 2 weeks', 'day', 14],
  ['forecast 6 months', 'week', 26],
  ['the next two years', 'month', 24],
  ['the coming 90 days', 'month', 3],
  ['a 3-month forecast', 'quarter', 1],
  ['forecast revenue for 6 months', 'month', 6],
  ['as for the last 6 months', 'month', undefined],
])('"%s" for a series by %s means a horizon of %s steps', (text, unit, steps) => {
  const request = readRequest({ history: [said(`${text}\n${csv(monthly)}`)], files: [] })
  expect(stepsOf(request?.horizon, { unit })).toBe(steps)
})

test('forecasts the column named in the text, ignoring case and spaces', () => {
  const table = csv(
    monthly.map((row) => `${row},7`),
    'month,units sold,net_revenue',
  )
  const name = (said: string) => readSeries(table, { said }).name
  expect([name('forecast the Net Revenue'), name('units sold, net revenue'), name('anything')]).toEqual([
    'net_revenue',
    'units sold',
    'units sold',
  ])
})

const said = (text: string, role: 'user' | 'assistant' = 'user') =>
  ({ role, parts: [{ kind: 'text', text }] }) as HandlerContext['history'][number]

test('a sentence with commas next to the table is not a row and may name the column', () => {
  const table = csv(
    monthly.map((row) => `${row},7`),
    'month,units,revenue',
  )
  for (const text of ['column revenue, 3 months ahead', 'hello, please, forecast revenue, 3 months ahead']) {
    const request = readRequest({ history: [said(`${text}\n${table}\nthanks, and bye`)], files: [] })
    expect(request).toMatchObject({ csv: table, horizon: { count: 3, unit: 'month' } })
    expect(request && readSeries(request.csv, request).name).toBe('revenue')
  }
})

test('forecasts a column of identifiers only when it is named', () => {
  const table = csv(
    monthly.map((row, at) => `${at},${row}`),
    'order_id,month,sales',
  )
  expect([readSeries(table).name, readSeries(table, { column: 'order_id' }).name]).toEqual([
    'sales',
    'order_id',
  ])
})

test('combines duplicate dates into their sum or mean, as instructed', () => {
  const twice = csv(monthly.flatMap((row) => [row, row]))
  const [value = 0] = readSeries(csv(monthly)).values
  expect(() => readSeries(twice)).toThrow(DuplicateDates)
  expect(readSeries(twice, { duplicates: 'sum' }).values[0]).toBeCloseTo(2 * value)
  expect(readSeries(twice, { duplicates: 'mean' }).values[0]).toBeCloseTo(value)
})

test.each([
  ['yes', 'sum'],
  ['Add them up, please', 'sum'],
  ['take the average', 'mean'],
  ['no', undefined],
])('the answer %j to the question about duplicate dates means %s', (answer, duplicates) => {
  const history = [said(csv(monthly)), said('Shall I add up?', 'assistant'), said(answer)]
  expect(readRequest({ history, files: [] })).toMatchObject({ csv: csv(monthly), duplicates })
})

test('a new table in any format replaces the previous one', () => {
  const data = { kind: 'data', data: { csv: 'broken', horizon: 9 } }
  const file = {
    name: 'sales.csv',
    mimeType: 'text/csv',
    bytes: Buffer.from(csv(monthly)).toString('base64'),
  }
  const history = [
    { role: 'user', parts: [data] },
    said('Send the table again.', 'assistant'),
    { role: 'user', parts: [{ kind: 'file', file }] },
  ] as HandlerContext['history']
  expect(readRequest({ history, files: [] })).toMatchObject({ csv: csv(monthly), horizon: { count: 9 } })
})

test('limits the horizon to half the length of the series', () => {
  expect([
    horizonFor(60, 12, 20),
    horizonFor(undefined, 12, 60),
    horizonFor(undefined, 1, 9),
    horizonFor(99, 12, 900),
  ]).toEqual([10, 12, 4, 60])
})

test.each([
  [0, 1, 5],
  [-3, 1234, 5],
  [5, 5, 2],
  [0, 0, 2],
])('the axis ticks enclose %d and %d', (least, most, atLeast) => {
  const ticks = ticksOf(least, most)
  expect(ticks.length).toBeGreaterThanOrEqual(atLeast)
  expect(ticks[0]).toBeLessThanOrEqual(least)
  expect(ticks.at(-1)).toBeGreaterThanOrEqual(most)
})

test('charges test money by default, and requires a payment address for other networks', () => {
  expect(priceOf({})).toMatchObject({ amount: '0.01', network: 'eip155:84532' })
  expect(() => priceOf({ FORECASTER_NETWORK: 'eip155:8453' })).toThrow(
    'FORECASTER_PAY_TO and FORECASTER_ASSET',
  )
  const real = {
    FORECASTER_NETWORK: 'eip155:8453',
    FORECASTER_PAY_TO: '0x1',
    FORECASTER_ASSET: '0x2',
    FORECASTER_PRICE: '2',
  }
  expect(priceOf(real)).toMatchObject({
    amount: '2',
    payTo: '0x1',
    asset: '0x2',
    extra: { name: 'USD Coin' },
  })
})
