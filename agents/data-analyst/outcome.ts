import type { Chart } from './chart/chart.ts'
import type { Figures } from './statistics/describe.ts'
import type { Correlation, Difference, Trend } from './statistics/relations.ts'

export interface AnalysisRequest {
  csv: string
  /** Of the file, or "table". */
  name: string
  question: string
  /** What was said to our question back. */
  answer?: string
}

/** The figures, for programs. */
export interface Analysis {
  name: string
  rows: number
  delimiter: string
  columns: ({ name: string; type: string } & Partial<Figures>)[]
  correlations: Correlation[]
  trends: Trend[]
  differences: Difference[]
  findings: string[]
  notes: string[]
}

export type Outcome =
  | { kind: 'answer'; markdown: string; analysis: Analysis; chart?: Chart }
  | { kind: 'ask'; prompt: string; columns: string[] }
  | { kind: 'decline'; reason: string }

export interface Pictures {
  svg: string
  png: Uint8Array
}

/** What the analysing process answers. */
export type Answered = Outcome & { pictures?: Pictures }
