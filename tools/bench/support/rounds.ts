import { LoadGenerator } from './load.ts'
import type { Placement } from './machine.ts'
import { type Figures, medians, rounds } from './measure.ts'

/** One measurement, which starts its servers, measures them and stops them. */
export type Subject = (generator: LoadGenerator) => Promise<Figures>

export interface Found {
  medians: Record<string, Figures>
  rounds: Record<string, Figures[]>
}

/** Measures the subjects alternately, round by round, so that load on the machine affects all of them. */
export async function inRounds(
  subjects: Record<string, Subject>,
  placement: Placement = 'pinned',
): Promise<Found> {
  using generator = new LoadGenerator(placement)
  const found: Record<string, Figures[]> = {}
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, subject] of Object.entries(subjects)) {
      const figures = (found[name] ??= [])
      figures.push(await subject(generator))
    }
  }
  return {
    medians: Object.fromEntries(Object.entries(found).map(([name, figures]) => [name, medians(figures)])),
    rounds: found,
  }
}
