import type { JsonValue } from './json.ts'

/** What one statement came to. */
export interface Step {
  /** As written, for example `a = 3`. */
  expression: string
  /** As a person reads it, for example `30.48 cm`. */
  formatted: string
}

export interface Calculated extends Step {
  ok: true
  /** The last statement that was calculated. */
  type: string
  /** A number or nested lists of numbers where JSON can hold them exactly enough, else the formatted text. */
  result: JsonValue
  /** Number and unit by themselves, where the result is a quantity. */
  value?: number
  unit?: string
  steps: Step[]
}

export const faults = ['syntax', 'unknown', 'refused', 'mismatch', 'time', 'memory', 'size'] as const
export type Fault = (typeof faults)[number]

export interface NotCalculated {
  ok: false
  fault: Fault
  /** What the expression language says. */
  detail: string
  /** Position of a syntax fault, from 1. */
  char?: number
  /** The name that has no value. */
  missing?: string
}

export type Outcome = Calculated | NotCalculated

export interface Calculation {
  expression: string
  precision?: number
  /** What the name `ans` stands for: the result before, as an expression. */
  ans?: string
}
