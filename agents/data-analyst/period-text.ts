import type { Period } from './statistics/group.ts'

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** Formats the start of a period for an axis. */
export function periodText(at: number, period: Period): string {
  const date = new Date(at)
  const [year, month, day] = [date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate()]
  if (period === 'year') return String(year)
  if (period === 'quarter') return `Q${Math.floor(month / 3) + 1} ${year}`
  if (period === 'month') return `${months[month]} ${year}`
  if (period === 'hour') return `${day} ${months[month]} ${String(date.getUTCHours()).padStart(2, '0')}:00`
  return `${day} ${months[month]} ${year}`
}
