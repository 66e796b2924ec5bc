import type { Period } from '../statistics/group.ts'

/** A chart as data, without its appearance. */
export type Chart = { title: string; subtitle?: string } & (
  | {
      kind: 'line'
      x: Axis
      y: Axis
      period: Period
      series: { name: string; points: [at: number, value: number][] }[]
    }
  | {
      kind: 'bar'
      x: Axis
      y: Axis
      names: string[]
      series: { name: string; values: (number | null)[] }[]
      ordered: boolean
    }
  | { kind: 'pie'; slices: { name: string; value: number }[] }
  | { kind: 'histogram'; x: Axis; y: Axis; bins: Bin[]; median: number }
  | {
      kind: 'scatter'
      x: Axis
      y: Axis
      points: [number, number][]
      line?: { slope: number; intercept: number }
    }
  | {
      kind: 'box'
      x: Axis
      y: Axis
      boxes: Box[]
    }
  | { kind: 'heatmap'; names: string[]; cells: [x: number, y: number, r: number][] }
)

export interface Axis {
  name: string
  /** A `%` or currency sign, as in the table. */
  sign?: string
}

export interface Bin {
  from: number
  to: number
  count: number
}

export interface Box {
  name: string
  /** The smallest and largest values that are not outliers, the quartiles and the median. */
  five: [number, number, number, number, number]
  outliers: number[]
}
