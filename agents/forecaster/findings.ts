import type { Forecast } from './forecast.ts'
import { numberText } from './number-text.ts'

/** Summary of the forecast in sentences. */
export function findingsOf({ series, steps, trials, model, origins }: Forecast): string[] {
  const [next, last] = [steps[0], steps.at(-1)]
  const now = series.values.at(-1) ?? 0
  if (next === undefined || last === undefined) return []
  const change = now === 0 ? undefined : (last.value - now) / Math.abs(now)
  const best = trials.find((trial) => trial.model === model)
  const better = best === undefined ? 0 : 1 - best.relative
  return [
    `${series.name} is expected at ${numberText(next.value)} in ${next.period} (80% band ${numberText(next.low)} to ${numberText(next.high)}).`,
    `By ${last.period} it is expected at ${numberText(last.value)}${change === undefined ? '' : `, ${percent(change)} against the last value`} (${numberText(last.low)} to ${numberText(last.high)}).`,
    better > 0.01
      ? `The model "${model}" erred ${percent(better).replace('+', '')} less than repeating the last value, in ${origins} forecasts made from the past of this very series.`
      : `No model did clearly better than "${model}" in ${origins} forecasts made from the past: take the band more seriously than the line.`,
  ]
}

function percent(share: number): string {
  return `${share > 0 ? '+' : ''}${(share * 100).toFixed(1)}%`
}
