import type { Plan } from '../choose.ts'
import type { Aggregate } from '../statistics/group.ts'
import type { NumberColumn } from '../table/columns.ts'
import type { Axis } from './chart.ts'

export type PlanOf<Kind extends Plan['kind']> = Extract<Plan, { kind: Kind }>

/** The axis for a column, with its name and the currency or percent sign used in the table. */
export const axis = ({ name, sign }: { name: string; sign?: string | undefined }): Axis =>
  sign ? { name, sign } : { name }

const said: Record<Aggregate, string> = {
  sum: 'total',
  mean: 'average',
  median: 'median',
  min: 'smallest',
  max: 'largest',
  count: 'number of rows',
}

/** "average price", or just "price" if every group is a single row. */
export function nameOf(aggregate: Aggregate, measure: NumberColumn | undefined, single: boolean): string {
  if (!measure || aggregate === 'count') return 'rows'
  return single ? measure.name : `${said[aggregate]} ${measure.name}`
}

export const listed = (names: string[]) =>
  names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names.at(-1)}` : (names[0] ?? '')

export const upperFirst = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
