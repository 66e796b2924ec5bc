/** A forecasting model, which maps values, oldest first, to the next ones. */
export interface Model {
  name: string
  /** Minimum number of values that the model needs. */
  needs: number
  predict: (values: number[], horizon: number) => number[]
}

const ahead = (horizon: number, at: (step: number) => number) =>
  Array.from({ length: horizon }, (_, step) => at(step + 1))

/** Candidate models, simplest first; ties go to the simpler one. */
export function modelsFor(season: number): Model[] {
  const plain: Model[] = [
    { name: 'last value', needs: 1, predict: (values, horizon) => ahead(horizon, () => values.at(-1) ?? 0) },
    { name: 'straight drift', needs: 2, predict: drift },
    { name: 'damped trend', needs: 6, predict: (values, horizon) => fitted(values, horizon, 1) },
  ]
  if (season < 2) return plain
  return [
    ...plain,
    {
      name: 'last season',
      needs: season,
      predict: (values, horizon) =>
        ahead(horizon, (step) => values[values.length - season + ((step - 1) % season)] ?? 0),
    },
    {
      name: 'trend and season',
      needs: 2 * season,
      predict: (values, horizon) => fitted(values, horizon, season),
    },
  ]
}

function drift(values: number[], horizon: number): number[] {
  const [first = 0, last = 0] = [values[0], values.at(-1)]
  const slope = (last - first) / Math.max(values.length - 1, 1)
  return ahead(horizon, (step) => last + slope * step)
}

interface Weights {
  level: number
  trend: number
  season: number
}

const dampings = [0.85, 0.95, 0.995]
const levels = [0.1, 0.3, 0.5, 0.8]
const trends = [0.02, 0.1, 0.3]
const seasonWeights = [0.05, 0.2, 0.4]

/** Holt-Winters with additive seasonality and a damped trend. The weights minimize the squared one-step error. */
function fitted(values: number[], horizon: number, season: number): number[] {
  let best: { error: number; next: number[] } | undefined
  for (const damping of dampings)
    for (const level of levels)
      for (const trend of trends)
        for (const weight of season > 1 ? seasonWeights : [0]) {
          const tried = smooth(values, horizon, season, { level, trend, season: weight }, damping)
          if (best === undefined || tried.error < best.error) best = tried
        }
  return best?.next ?? []
}

function smooth(values: number[], horizon: number, season: number, weights: Weights, damping: number) {
  const first = mean(values.slice(0, season))
  const second = mean(values.slice(season, 2 * season))
  let level = first
  let trend = season > 1 ? (second - first) / season : (values[1] ?? first) - first
  const cycle = season > 1 ? values.slice(0, season).map((value) => value - first) : [0]
  let error = 0
  for (const [at, value] of values.entries()) {
    const expected = level + damping * trend + (cycle[at % season] ?? 0)
    if (at >= season) error += (value - expected) ** 2
    const before = level
    level =
      weights.level * (value - (cycle[at % season] ?? 0)) + (1 - weights.level) * (level + damping * trend)
    trend = weights.trend * (level - before) + (1 - weights.trend) * damping * trend
    if (season > 1)
      cycle[at % season] = weights.season * (value - level) + (1 - weights.season) * (cycle[at % season] ?? 0)
  }
  const next = ahead(horizon, (step) => {
    const damped = (damping * (1 - damping ** step)) / (1 - damping)
    return level + damped * trend + (cycle[(values.length + step - 1) % season] ?? 0)
  })
  return { error, next }
}

export function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(values.length, 1)
}
