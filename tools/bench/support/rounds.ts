import { LoadGenerator } from './load.ts'
import { type Figures, medians, rounds } from './measure.ts'

/** One measurement: starts what it needs, measures, and ends it. */
export type Subject = (generator: LoadGenerator) => Promise<Figures>

export interface Found {
  medians: Record<string, Figures>
  rounds: Record<string, Figures[]>
}

/** Measures the subjects in turn, round after round, so that a busy minute of the machine meets all of them. */
export async function inRounds(subjects: Record<string, Subject>): Promise<Found> {
  using generator = new LoadGenerator()
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
