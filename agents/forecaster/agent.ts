import {
  data,
  defineAgent,
  file,
  type HandlerContext,
  type Output,
} from '../../shared/handler/define-agent.ts'
import { findingsOf } from './findings.ts'
import { type Forecast, forecast } from './forecast.ts'
import { priceOf } from './price.ts'
import { reportOf } from './report.ts'
import { horizonFor, readRequest } from './request.ts'
import { DuplicateDates, readSeries, SeriesFault } from './series.ts'

/** The skill stands in `skills/`. */
export default defineAgent({
  name: 'forecaster',
  description:
    'Forecasts a time series from a CSV: tries several models on its own past, takes the one that errs least, and delivers a PDF report ' +
    'with chart, expected values, 80% bands and the record of every model, and the numbers as CSV.',
  version: '1.0.0',
  concurrency: 2,
  deadlineMs: 60_000,
  executionCost: priceOf(process.env),
  handle,
})

async function* handle(context: HandlerContext): AsyncGenerator<Output> {
  const request = readRequest(context)
  // Whoever has paid is asked rather than turned away: the answer costs nothing more.
  if (request === undefined) {
    yield context.ask(
      'Which series shall I forecast? Send a CSV with a column of dates and a column of numbers.',
    )
    return
  }
  try {
    const series = readSeries(request.csv, request.column, request.duplicates)
    const made = forecast(series, horizonFor(request.horizon, series.season, series.values.length))
    yield* outputs(made)
  } catch (error) {
    if (!(error instanceof SeriesFault)) throw error
    const next = error instanceof DuplicateDates ? 'Your' : 'Send the table again, as text or as a file; your'
    yield context.ask(`${error.message} ${next} answer costs nothing more.`)
  }
}

async function* outputs(made: Forecast): AsyncGenerator<Output> {
  yield findingsOf(made).join('\n')
  yield data({
    column: made.series.name,
    unit: made.series.unit,
    model: made.model,
    forecast: made.steps.map(({ period, value, low, high }) => ({ period, value, low, high })),
    trials: made.trials.map(({ model, error, relative }) => ({ model, error, relative })),
  })
  yield file('forecast.pdf', 'application/pdf', await reportOf(made))
  const rows = made.steps.map(({ period, value, low, high }) => [period, value, low, high].join(','))
  yield file('forecast.csv', 'text/csv', Buffer.from(['period,expected,low,high', ...rows, ''].join('\n')))
}
