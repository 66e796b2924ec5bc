import type { Chart } from './chart/chart.ts'
import type { Figures } from './statistics/describe.ts'
import type { Correlation, Difference, Trend } from './statistics/relations.ts'

export interface AnalysisRequest {
  csv: string
  /** Name of the file, or "table". */
  name: string
  question: string
  /** The caller's answer to our follow-up question. */
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

/** The response from the analysing process. */
export type Answered = Outcome & { pictures?: Pictures }
