import { expect, test } from 'vitest'
import { analyse } from './analyse.ts'
import type { Outcome } from './outcome.ts'
import { months, people, sales } from './sample-tables.ts'

const asked = (csv: string, question: string, answer?: string) =>
  analyse({ csv, name: 'table', question, ...(answer !== undefined && { answer }) })

test.each([
  [sales, 'what stands out?', 'line', 'Total Units by month'],
  [sales, '', 'line', 'Total Units by month'],
  [sales, 'sales by month', 'line', 'Total Sales (USD) by month'],
  [sales, 'average sales per quarter', 'line', 'Average Sales (USD) by quarter'],
  [sales, 'sales by month and region', 'line', 'Total Sales (USD) by month and Region'],
  [sales, 'sales by region', 'bar', 'Total Sales (USD) by Region'],
  [sales, 'how many rows per region', 'bar', 'Rows by Region'],
  [sales, 'share of sales by region', 'pie', 'Total Sales (USD) by Region'],
  [sales, 'histogram of units', 'histogram', 'Distribution of Units'],
  [sales, 'distribution of units by region', 'box', 'Units by Region'],
  [sales, 'units vs sales', 'scatter', 'Units and Sales (USD)'],
  [sales, 'trend of units', 'line', 'Total Units by month'],
  [months, 'sales by month', 'bar', 'Sales by month'],
  [months, 'sales and cost by month', 'bar', 'Sales and cost by month'],
  [people, 'größe vs alter', 'scatter', 'größe and alter'],
  [people, 'histogram of alter', 'histogram', 'Distribution of alter'],
])('the question selects the chart (%#)', (csv, question, kind, title) => {
  expect(asked(csv, question)).toMatchObject({ kind: 'answer', chart: { kind, title } })
})

test.each([
  [sales, 'draw a chart'],
  [sales, 'draw a histogram'],
  [sales, 'what is the mean of the column?'],
  [sales, 'show the trend'],
  [sales, 'histogram of foo'],
  [months, 'pizza'],
])('asks which column to use and lists the columns (%#)', (csv, question) => {
  const columns = csv === sales ? ['Units', 'Sales (USD)'] : ['sales', 'cost']
  expect(asked(csv, question)).toMatchObject({
    kind: 'ask',
    columns,
    prompt: expect.stringContaining(`1. ${columns[0]}`),
  })
})

test.each([
  ['draw a histogram', 'units', 'histogram', 'Distribution of Units'],
  ['draw a histogram', '2', 'histogram', 'Distribution of Sales (USD)'],
  ['draw a chart', 'sales by region', 'bar', 'Total Sales (USD) by Region'],
  ['show the trend', 'Sales', 'line', 'Total Sales (USD) by month'],
  ['draw a chart', 'you choose', 'line', 'Total Units by month'],
])('the answer selects the chart: %s, %s', (question, answer, kind, title) => {
  expect(asked(sales, question, answer)).toMatchObject({ kind: 'answer', chart: { kind, title } })
})

test('repeats the question if the answer names no column', () => {
  expect(asked(sales, 'draw a histogram', 'bananas')).toMatchObject({
    kind: 'ask',
    prompt: expect.stringContaining('no column "bananas"'),
  })
})

test('computes the figures for the table', () => {
  expect(
    figures(asked('x,y\n1,2\n2,4\n3,6\n4,8\n5,10\n6,12\n7,14\n8,16\n9,18\n100,200\n,', '')),
  ).toMatchObject({
    rows: 10,
    columns: [
      {
        name: 'x',
        count: 10,
        mean: 14.5,
        median: 5.5,
        q1: 3.25,
        q3: 7.75,
        min: 1,
        max: 100,
        outliers: { count: 1, examples: [{ row: 10, value: 100 }] },
      },
      { name: 'y' },
    ],
    correlations: [{ a: 'x', b: 'y', r: 1, rows: 10 }],
  })
})

test('finds and reports trend, difference and missing values', () => {
  const { findings, trends, differences } = figures(
    asked(`${sales}\n2024-12-05,,Kettle,,`, 'what stands out?'),
  )
  expect(trends[0]).toMatchObject({ date: 'Date', period: 'month', periods: 12, aggregate: 'sum' })
  expect(differences[0]).toMatchObject({
    category: 'Region',
    highest: { value: 'South' },
    lowest: { value: 'North' },
  })
  expect(findings.join('\n')).toMatch(
    /clearly rises over Date[\s\S]*differs by Region[\s\S]*missing in 1 of 25 rows/,
  )
})

const dated = (dates: string[], values: number[]) =>
  ['date,revenue', ...dates.map((date, at) => `${date},${values[at]}`)].join('\n')

test.each([
  ['month', ['2024-01-01', '2024-02-01']],
  ['month', ['2024-01-01', '2024-02-01', '2024-03-01']],
  ['quarter', ['2023-04-01', '2023-07-01', '2023-10-01', '2024-01-01']],
  ['year', ['2021-01-01', '2022-01-01', '2023-01-01']],
  ['day', ['2024-01-01', '2024-01-02', '2024-01-03']],
])('treats figures dated on the first of each %s as figures for the whole period', (period, dates) => {
  const values = dates.map((_, at) => 100 + at)
  expect(asked(dated(dates, values), 'show revenue over time')).toMatchObject({
    chart: { title: `Revenue by ${period}` },
  })
})

test('describes dates on the first of each month as monthly in the column table and in the data', () => {
  const of = (...dates: string[]) => {
    const outcome = asked(
      dated(
        dates,
        dates.map((_, at) => at),
      ),
      '',
    )
    const { granularity } = figures(outcome).columns[0] as unknown as { granularity: string }
    return [granularity, outcome.kind === 'answer' && outcome.markdown.includes(`by ${granularity}`)]
  }
  expect(of('2024-01-01', '2024-02-01', '2024-04-01')).toEqual(['month', true])
  expect(of('2024-01-01', '2024-04-01', '2024-10-01')).toEqual(['quarter', true])
  expect(of('2024-01-01', '2024-02-01', '2024-02-02')).toEqual(['day', true])
  expect(of('2024-01-01')).toEqual(['day', true])
})

test('reports that relations and outliers were not examined if there are few rows', () => {
  const rows = ['160,55', '170,65', '180,80', '175,72', '165,500']
  const outcome = asked(['height,weight', ...rows].join('\n'), 'any outliers?')
  const markdown = outcome.kind === 'answer' ? outcome.markdown : ''
  expect(markdown).toContain(
    '5 rows are too few to look for relations (at least 6) and outliers (at least 8)',
  )
  expect(markdown).not.toContain('no outliers')
  const seven = asked(['height,weight', ...rows, '166,60', '171,62'].join('\n'), 'any outliers?')
  expect(seven.kind === 'answer' && seven.markdown).toContain('7 rows are too few to look for outliers')
})

test('detects growth of 18 % and then 16 % over three months as a trend', () => {
  const csv = dated(['2024-01-01', '2024-02-01', '2024-03-01'], [1000, 1180, 1369])
  expect(figures(asked(csv, 'what stands out?')).findings.join('\n')).toMatch(
    /revenue clearly rises over date/,
  )
  const noise = dated(['2024-01-01', '2024-02-01', '2024-03-01'], [1000, 1180, 1010])
  expect(figures(asked(noise, 'what stands out?')).findings.join('\n')).not.toMatch(/rises|falls/)
})

test('detects yearly growth despite seasonality, but no growth in pure seasonality', () => {
  const dates = Array.from({ length: 36 }, (_, at) =>
    new Date(Date.UTC(2022, at, 1)).toISOString().slice(0, 10),
  )
  const season = (at: number) => 1 + 0.5 * Math.sin((at / 12) * 2 * Math.PI)
  const years = [1000, 1180, 1369]
  const grown = dates.map((_, at) => Math.round((years[Math.floor(at / 12)] ?? 0) * season(at)))
  expect(figures(asked(dated(dates, grown), '')).findings.join('\n')).toMatch(
    /revenue rises over date from year to year: \+16 % in the newest 12 months, after \+18 %/,
  )
  const flat = dates.map((_, at) => Math.round(1000 * season(at) + ((at * 37) % 11) - 5))
  expect(figures(asked(dated(dates, flat), '')).findings.join('\n')).not.toMatch(/rises|falls/)
})

test.each([
  ['one row', 'a,b\n1,x'],
  ['empty columns', 'a,b\n,x\n,y'],
  ['equal numbers', 'a,b\n5,5\n5,5\n5,5'],
  ['only texts', 'name,city\nAnn,Rome\nBob,Oslo'],
  ['only dates', 'day\n2024-01-01\n2024-01-02\n2024-01-03'],
  ['all missing', 'a,b\nNA,NA\nNA,'],
  ['huge numbers', 'a,b\n1e99,1\n-1e99,2\n1e308,3'],
])('the answer contains no NaN or infinite number for %s', (_name, csv) => {
  const outcome = asked(csv, '')
  expect(outcome.kind).toBe('answer')
  const numberless: string[] = []
  JSON.stringify(outcome, (key, value) => {
    if (typeof value === 'number' && !Number.isFinite(value)) numberless.push(key)
    return value
  })
  expect(numberless).toEqual([])
})

test('escapes markup from the table in the report', () => {
  const outcome = asked('<b>x</b>,n\n<script>a|b</script>,1\ny,2', '')
  expect(outcome.kind === 'answer' && outcome.markdown).not.toMatch(/(?<!\\)<script|(?<!\\)<b>/)
})

test('declines input that is not a table and gives the reason', () => {
  expect(asked('a,b\n"1,2', '')).toMatchObject({
    kind: 'decline',
    reason: expect.stringContaining('never closed'),
  })
})

function figures(outcome: Outcome) {
  if (outcome.kind !== 'answer') throw new Error(`not answered: ${JSON.stringify(outcome)}`)
  return outcome.analysis
}
