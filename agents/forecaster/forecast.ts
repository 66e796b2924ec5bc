import { type Model, mean, modelsFor } from './models.ts'
import { labelOf, type Series, timeAfter } from './series.ts'

export interface Step {
  period: string
  value: number
  /** 80 % prediction interval. */
  low: number
  high: number
}

export interface Trial {
  model: string
  /** Mean absolute error of the backtests, in the unit of the values. */
  error: number
  /** Error relative to repeating the last value. A figure below 1 is better than that. */
  relative: number
}

export interface Forecast {
  series: Series
  model: string
  steps: Step[]
  /** The models, best first. */
  trials: Trial[]
  /** Number of backtests per model. */
  origins: number
}

const originsMax = 24

/**
 * Tests every model on past values and uses the one with the smallest error. Its errors per horizon give the prediction
 * interval.
 */
export function forecast(series: Series, horizon: number): Forecast {
  const { values, season } = series
  const origins = originsOf(values.length, horizon)
  const models = modelsFor(season).filter(({ needs }) => needs <= (origins[0] ?? 0))
  const tried = models.map((model) => ({ model, errors: errorsOf(model, values, origins, horizon) }))
  const errorOf = ({ errors }: { errors: number[][] }) => mean(errors.flat().map(Math.abs))
  const yardstick = tried[0] === undefined ? 0 : errorOf(tried[0])
  // A more complex model must be at least one percent better than a simpler one to be chosen.
  const best = tried.reduce((one, other) => (errorOf(other) < 0.99 * errorOf(one) ? other : one))
  const next = best.model.predict(values, horizon)
  const steps = next.map((value, at): Step => {
    // The interval never narrows with the horizon.
    const spread = Math.max(
      ...best.errors.slice(0, at + 1).map((errors) => quantile(errors.map(Math.abs), 0.8)),
    )
    return {
      period: labelOf(timeAfter(series, at + 1), series.unit),
      value,
      low: value - spread,
      high: value + spread,
    }
  })
  const trials = tried
    .map((one) => ({
      model: one.model.name,
      error: errorOf(one),
      relative: yardstick === 0 ? 1 : errorOf(one) / yardstick,
    }))
    .sort((a, b) => a.error - b.error)
  return { series, model: best.model.name, steps, trials, origins: origins.length }
}

/** Lengths of the training windows. The last one leaves a single value for comparison. */
function originsOf(length: number, horizon: number): number[] {
  const first = Math.max(4, Math.floor(length * 0.6), length - horizon - originsMax)
  return Array.from({ length: length - first }, (_, at) => first + at).slice(-originsMax)
}

/** Errors by horizon. */
function errorsOf(model: Model, values: number[], origins: number[], horizon: number): number[][] {
  const errors: number[][] = Array.from({ length: horizon }, () => [])
  for (const origin of origins) {
    const ahead = Math.min(horizon, values.length - origin)
    const said = model.predict(values.slice(0, origin), ahead)
    for (const [at, value] of said.entries()) errors[at]?.push((values[origin + at] ?? 0) - value)
  }
  return errors
}

function quantile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share))] ?? 0
}
