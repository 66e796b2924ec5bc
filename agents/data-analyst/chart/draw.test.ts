import { expect, test } from 'vitest'
import { analyse } from '../analyse.ts'
import { months, people, sales } from '../sample-tables.ts'
import { drawPng, drawSvg } from './draw.ts'

const chartOf = (csv: string, question: string) => {
  const outcome = analyse({ csv, name: 'table', question })
  if (outcome.kind !== 'answer' || !outcome.chart) throw new Error(`no chart: ${JSON.stringify(outcome)}`)
  return outcome.chart
}

test.each([
  [sales, 'sales by month', ['Total Sales (USD) by month', 'Jan 2024']],
  [sales, 'sales by month and region', ['North', 'South']],
  [sales, 'sales by region', ['North', 'South', 'total Sales (USD)']],
  [sales, 'share of sales by region', ['North', '%)']],
  [sales, 'box plot of units by region', ['North', 'Units']],
  [months, 'sales and cost by month', ['sales', 'cost', 'Jun']],
  [people, 'histogram of alter', ['Distribution of alter', 'rows']],
  [people, 'größe vs alter', ['größe', 'r = ']],
  ['a,b,c\n1,2,9\n2,4,7\n3,7,8\n4,1,2\n5,3,1\n6,6,5', 'correlations', ['Correlations', '1.00']],
])('the chart shows its title, axes and names (%#)', (csv, question, words) => {
  const svg = drawSvg(chartOf(csv, question))
  for (const word of words) expect(svg).toContain(word)
  expect(svg).not.toContain('NaN')
})

test('markup in names is escaped in the drawing', () => {
  const svg = drawSvg(chartOf('who,n\n<script>alert(1)</script>,3\n"x""/><a>",4', 'n by who'))
  expect(svg).not.toMatch(/<script|<a>/)
})

test('draws text without system fonts', async () => {
  const frame = (inner: string) =>
    `<svg xmlns="http://www.w3.org/2000/svg" width="200" height="60">${inner}</svg>`
  const empty = await drawPng(frame(''))
  const written = await drawPng(
    frame('<text x="9" y="40" font-size="30" font-family="Open Sans">Größe Ж Ω</text>'),
  )
  expect(written.length).toBeGreaterThan(empty.length * 3)
})
