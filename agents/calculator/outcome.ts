import type { JsonValue } from './json.ts'

/** Result of one statement. */
export interface Step {
  /** The source text, for example `a = 3`. */
  expression: string
  /** The formatted result, for example `30.48 cm`. */
  formatted: string
}

export interface Calculated extends Step {
  ok: true
  /** The last calculated statement. */
  type: string
  /** A number or nested lists of numbers if JSON represents them precisely, otherwise the formatted text. */
  result: JsonValue
  /** Number and unit separately, for a quantity. */
  value?: number
  unit?: string
  steps: Step[]
}

export const faults = ['syntax', 'unknown', 'refused', 'mismatch', 'time', 'memory', 'size'] as const
export type Fault = (typeof faults)[number]

export interface NotCalculated {
  ok: false
  fault: Fault
  /** Error message of the expression language. */
  detail: string
  /** Position of a syntax error, from 1. */
  char?: number
  /** The undefined name. */
  missing?: string
}

export type Outcome = Calculated | NotCalculated

export interface Calculation {
  expression: string
  precision?: number
  /** The value of `ans`: the previous result as an expression. */
  ans?: string
}
