import { defineAgent, file, type HandlerContext, type Output } from '@parley/agent'
import { analyseApart, concurrentAnalyses } from './analysis.ts'
import { TableFault } from './bounds.ts'
import type { Answered } from './outcome.ts'
import { findTable } from './table/find-table.ts'

/** The skills are in `skills/`, one Markdown file each. */
export default defineAgent({
  name: 'data-analyst',
  description:
    'Reads a table (CSV, TSV, semicolons) and says what stands out: statistics of every column, trends over time, differences ' +
    'between groups, correlations, outliers and missing values, with a chart that fits the question as SVG and PNG. ' +
    'Answers questions such as "sales by month" or "histogram of age", and asks back when it is not clear which column is meant.',
  // Each analysis runs in a separate process.
  concurrency: concurrentAnalyses,
  deadlineMs: 120_000,
  handle,
})

async function* handle(context: HandlerContext): AsyncGenerator<Output> {
  try {
    const request = findTable(context)
    if (!('csv' in request)) {
      yield context.ask(
        'Which table shall I look at? Send it as CSV: as text, as a file, or as data `{"csv": "…"}`.',
      )
      return
    }
    yield* outputs(await analyseApart(request, context.signal), context)
  } catch (error) {
    if (!(error instanceof TableFault)) throw error
    yield context.decline(error.message)
  }
}

function* outputs(answered: Answered, context: HandlerContext): Generator<Output> {
  if (answered.kind === 'decline') yield context.decline(answered.reason)
  else if (answered.kind === 'ask') yield context.ask(answered.prompt, { columns: answered.columns })
  else {
    yield answered.markdown
    // A JSON round trip removes undefined fields and NaN.
    yield {
      ...(JSON.parse(JSON.stringify(answered.analysis)) as object),
      ...(answered.chart && { chart: { kind: answered.chart.kind, title: answered.chart.title } }),
    }
    const { pictures } = answered
    if (pictures) {
      yield file('chart.svg', 'image/svg+xml', pictures.svg)
      yield file('chart.png', 'image/png', pictures.png)
    }
  }
}
