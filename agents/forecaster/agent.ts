import { data, defineAgent, file, type HandlerContext, type Output } from '@parley/agent'
import { findingsOf } from './findings.ts'
import { type Forecast, forecast } from './forecast.ts'
import { priceOf } from './price.ts'
import { reportOf } from './report.ts'
import { horizonFor, type Request, readRequest, stepsOf } from './request.ts'
import { DuplicateDates, firstNamed, readSeries, SeriesFault } from './series.ts'

/** The skill is in `skills/`. */
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
  // Asks instead of rejecting, because the caller has paid and can answer free of charge.
  if (request === undefined) {
    yield context.ask(
      'Which series shall I forecast? Send a CSV with a column of dates and a column of numbers.',
    )
    return
  }
  try {
    const series = readSeries(request.csv, request)
    const asked = stepsOf(request.horizon, series)
    const made = forecast(series, horizonFor(asked, series.season, series.values.length))
    yield* outputs(made, notesOn(made, asked, request))
  } catch (error) {
    if (!(error instanceof SeriesFault)) throw error
    const next = error instanceof DuplicateDates ? 'Your' : 'Send the table again, as text or as a file; your'
    yield context.ask(`${error.message} ${next} answer costs nothing more.`)
  }
}

/** Notes on assumptions and applied limits. */
function notesOn(
  { series, steps }: Forecast,
  asked: number | undefined,
  { column, said }: Request,
): string[] {
  const { name, others, unit } = series
  const isChosen = column === undefined && firstNamed([{ name }], said) === undefined
  return [
    ...(asked !== undefined && asked > steps.length
      ? [
          `${asked} ${unit}s were requested. ${steps.length} are forecast: at most 60, and at most half the length of the series.`,
        ]
      : []),
    ...(isChosen && others.length > 0
      ? [
          `The table has other columns of numbers (${others.slice(0, 10).join(', ')}): "column ${others[0]}" forecasts that one.`,
        ]
      : []),
  ]
}

async function* outputs(made: Forecast, notes: string[]): AsyncGenerator<Output> {
  yield [...findingsOf(made), ...notes].join('\n')
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
