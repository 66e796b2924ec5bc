import type { Chart } from './chart.ts'

export type ChartOf<Kind extends Chart['kind']> = Extract<Chart, { kind: Kind }>

/** A picture: its size in points and the options for the library. */
export interface Drawing {
  width: number
  height: number
  option: object
}

export const size = { width: 960, height: 540 }

/** Whether the axis may start above zero, which it does only if starting at zero would flatten the curve. */
export function scaled(values: number[], ratio = 2): boolean {
  const least = values.reduce((a, b) => Math.min(a, b), Infinity)
  const most = values.reduce((a, b) => Math.max(a, b), -Infinity)
  return least > 0 && least > (most - least) * ratio
}
