import type { ExampleResults, Facts, Measurements, Offer } from './offer.ts'

/** Measurements with fewer samples are ignored. */
export const measuredSamplesMin = 5

export interface Estimate {
  latencyMs?: number
  /** Whether the latency was measured rather than declared. */
  measured: boolean
}

/** Returns the measured latency if there is one, otherwise the lowest latency that a skill declares. */
export function estimateOf({ measured, skills }: Offer): Estimate {
  const seen = enough(measured)?.latencyMs
  if (seen !== undefined && Number.isFinite(seen) && seen >= 0)
    return { latencyMs: Math.round(seen), measured: true }
  let least = Number.POSITIVE_INFINITY
  for (const { performance } of skills) least = Math.min(least, performance.avgProcessingTimeMs ?? least)
  return Number.isFinite(least) ? { latencyMs: Math.round(least), measured: false } : { measured: false }
}

/**
 * The measured fraction of successful tasks; undefined if there are too few samples. While there are, the examples that the
 * gateway has tried count as further samples.
 */
export function successOf(facts: Facts): number | undefined {
  const { measured } = facts
  const examples = countedExamples(facts)
  const share = examples === undefined ? enough(measured)?.successShare : shareWith(examples, measured)
  return share === undefined || Number.isNaN(share) ? undefined : Math.min(1, Math.max(0, share))
}

/** The examples that count, because there are too few other samples. */
export function countedExamples({ measured }: Pick<Facts, 'measured'>): ExampleResults | undefined {
  const { examples } = measured ?? {}
  return enough(measured) === undefined && examples !== undefined && examples.tried > 0 ? examples : undefined
}

function shareWith({ completed, tried }: ExampleResults, measured: Measurements | undefined): number {
  const { samples = 0, successShare = 1 } = measured ?? {}
  return (samples * successShare + completed) / (samples + tried)
}

function enough(measured: Measurements | undefined): Measurements | undefined {
  return measured !== undefined && measured.samples >= measuredSamplesMin ? measured : undefined
}
