import type { Plan } from './choose.ts'
import type { Correlation, Difference, Trend } from './statistics/relations.ts'
import { type Column, isCategory, isDate, isMeasure, isWord } from './table/columns.ts'

export interface Relations {
  correlations: Correlation[]
  trends: Trend[]
  differences: Difference[]
}

/** Minimum strength of a relation that the single chart of an overview may show. */
const telling = 0.4

/** Chooses the most informative chart: the clearest relation or, if there is none, a distribution. */
export function tellingPlan(columns: Column[], relations: Relations): Plan | undefined {
  const candidates = [
    trendPlan(columns, relations),
    differencePlan(columns, relations),
    correlationPlan(columns, relations),
  ]
  const best = candidates
    .filter((candidate) => candidate !== undefined)
    .sort((a, b) => b.strength - a.strength)[0]
  if (best && best.strength >= telling) return best.plan
  return shapePlan(columns)
}

interface Candidate {
  plan: Plan
  strength: number
}

function trendPlan(columns: Column[], { trends }: Relations): Candidate | undefined {
  const [trend] = trends
  const date = columns.find(isDate)
  const measure = columns.filter(isMeasure).find(({ name }) => name === trend?.measure)
  return (
    trend &&
    date &&
    measure && { plan: { kind: 'line', date, measures: [measure] }, strength: Math.abs(trend.r) }
  )
}

function differencePlan(columns: Column[], { differences }: Relations): Candidate | undefined {
  const [difference] = differences
  const category = columns.filter(isCategory).find(({ name }) => name === difference?.category)
  const measure = columns.filter(isMeasure).find(({ name }) => name === difference?.measure)
  if (!difference || !category || !measure) return undefined
  return {
    plan: { kind: 'bar', category, measures: [measure], aggregate: 'mean' },
    strength: Math.sqrt(difference.explained) * 0.95,
  }
}

function correlationPlan(columns: Column[], { correlations }: Relations): Candidate | undefined {
  // Skip columns with the same content.
  const correlation = correlations.find(({ r }) => Math.abs(r) < 0.999)
  const measures = columns.filter(isMeasure)
  const x = measures.find(({ name }) => name === correlation?.a)
  const y = measures.find(({ name }) => name === correlation?.b)
  return (
    correlation && x && y && { plan: { kind: 'scatter', x, y }, strength: Math.abs(correlation.r) * 0.97 }
  )
}

function shapePlan(columns: Column[]): Plan | undefined {
  const measures = columns.filter(isMeasure)
  const [measure] = measures
  const date = columns.find(isDate)
  const category =
    columns.find(isCategory) ??
    columns.find((column) => isWord(column) && column.distinct > 1 && column.values.length <= 30)
  if (date && measure) return { kind: 'line', date, measures: [measure] }
  if (measure && category && isWord(category)) return { kind: 'bar', category, measures: [measure] }
  if (measure) return { kind: 'histogram', measure }
  if (category && isWord(category)) return { kind: 'bar', category, measures: [], aggregate: 'count' }
  return date && { kind: 'line', date, measures: [], aggregate: 'count' }
}
