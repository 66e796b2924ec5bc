export type Granularity = 'year' | 'quarter' | 'month' | 'day' | 'time'
export type DayOrder = 'day-first' | 'month-first'

export interface ReadDate {
  /** Milliseconds since 1970, UTC. */
  at: number
  granularity: Granularity
}

const months = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const name = String.raw`(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?`
const clock = String.raw`(?:[T ,]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(am|pm)?\s*(Z|[-+]\d{2}:?\d{2})?)?`

type Reader = (
  match: RegExpExecArray,
  order: DayOrder,
) => [y: number, m: number, d: number, granularity: Granularity, clockAt: number]

const year = (text: string | undefined) => {
  const number = Number(text)
  return text?.length === 2 ? (number < 70 ? 2000 : 1900) + number : number
}
const month = (text: string | undefined) => months.indexOf((text ?? '').slice(0, 3).toLowerCase()) + 1

const readers: [RegExp, Reader][] = [
  [
    new RegExp(`^(\\d{4})[-/.](\\d{1,2})[-/.](\\d{1,2})${clock}$`, 'i'),
    (m) => [year(m[1]), Number(m[2]), Number(m[3]), 'day', 4],
  ],
  [/^(\d{4})[-/.](\d{1,2})$/, (m) => [year(m[1]), Number(m[2]), 1, 'month', 0]],
  [/^(\d{1,2})[-/.](\d{4})$/, (m) => [year(m[2]), Number(m[1]), 1, 'month', 0]],
  [/^(\d{4})[- ]?Q([1-4])$/i, (m) => [year(m[1]), Number(m[2]) * 3 - 2, 1, 'quarter', 0]],
  [/^Q([1-4])[- /]?(\d{4})$/i, (m) => [year(m[2]), Number(m[1]) * 3 - 2, 1, 'quarter', 0]],
  [
    new RegExp(`^(\\d{1,2})[-/.](\\d{1,2})[-/.](\\d{4}|\\d{2})${clock}$`, 'i'),
    (m, order) =>
      order === 'day-first'
        ? [year(m[3]), Number(m[2]), Number(m[1]), 'day', 4]
        : [year(m[3]), Number(m[1]), Number(m[2]), 'day', 4],
  ],
  [
    new RegExp(`^(\\d{1,2})[- .]*${name}[- ,]*(\\d{4})${clock}$`, 'i'),
    (m) => [year(m[3]), month(m[2]), Number(m[1]), 'day', 4],
  ],
  [
    new RegExp(`^${name}[- ]*(\\d{1,2}),? +(\\d{4})${clock}$`, 'i'),
    (m) => [year(m[3]), month(m[1]), Number(m[2]), 'day', 4],
  ],
  [new RegExp(`^${name}[- ']*(\\d{4}|\\d{2})$`, 'i'), (m) => [year(m[2]), month(m[1]), 1, 'month', 0]],
]

/** Parses the date of a cell. A bare year is a number unless the column name indicates dates. */
export function dateOf(cell: string, order: DayOrder): ReadDate | undefined {
  if (cell.length > 40 || !/\d/.test(cell)) return undefined
  for (const [pattern, read] of readers) {
    const match = pattern.exec(cell)
    if (!match) continue
    const [y, m, d, granularity, clockAt] = read(match, order)
    const at = Date.UTC(y, m - 1, d)
    if (m < 1 || m > 12 || d < 1 || new Date(at).getUTCDate() !== d) return undefined
    const time = clockAt ? timeOf(match, clockAt) : undefined
    return time === undefined ? { at, granularity } : { at: at + time, granularity: 'time' }
  }
  return undefined
}

function timeOf(match: RegExpExecArray, at: number): number | undefined {
  const [hours, minutes, seconds, half, zone] = match.slice(at, at + 5)
  if (hours === undefined) return undefined
  const noon =
    half?.toLowerCase() === 'pm' ? (Number(hours) % 12) + 12 : half ? Number(hours) % 12 : Number(hours)
  const offset = /^([-+])(\d{2}):?(\d{2})$/.exec(zone ?? '')
  const away = offset ? Number(`${offset[1]}1`) * (Number(offset[2]) * 60 + Number(offset[3])) : 0
  return ((noon * 60 + Number(minutes) - away) * 60 + Number(seconds ?? 0)) * 1000
}

/** Whether `03/04/2024` is in April or March. The other cells decide or, if they do not, the separator. */
export function dayOrder(cells: string[]): DayOrder {
  let slash = false
  for (const cell of cells) {
    const match = /^(\d{1,2})([-/.])(\d{1,2})[-/.]\d{2,4}/.exec(cell)
    if (!match) continue
    if (Number(match[1]) > 12) return 'day-first'
    if (Number(match[3]) > 12) return 'month-first'
    slash ||= match[2] === '/'
  }
  return slash ? 'month-first' : 'day-first'
}
