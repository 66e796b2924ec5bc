/** Sums of usage (docs/spec/operator.md#usage). */

/**
 * @typedef {{ asset: string, asset_name: string, network: string, amount: string, sandbox?: true }} Money
 * @typedef {object} UsageRow
 * @property {string} [day]
 * @property {string} [owner]
 * @property {string} [agent]
 * @property {number} tasks
 * @property {number} completed
 * @property {number} failed
 * @property {number} worked_ms
 * @property {number} input_tokens
 * @property {number} output_tokens
 * @property {Money[]} paid
 */

/**
 * The sum of all rows.
 * @param {readonly UsageRow[]} rows
 * @returns {UsageRow}
 */
export function total(rows) {
  const sum = (
    /** @type {'tasks' | 'completed' | 'failed' | 'worked_ms' | 'input_tokens' | 'output_tokens'} */ name,
  ) => rows.reduce((all, row) => all + row[name], 0)
  return {
    tasks: sum('tasks'),
    completed: sum('completed'),
    failed: sum('failed'),
    worked_ms: sum('worked_ms'),
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
    paid: moneySum(rows.flatMap(({ paid }) => paid)),
  }
}

/**
 * Adds amounts of the same asset on the same network. Test money is kept apart.
 * @param {readonly Money[]} amounts
 * @returns {Money[]}
 */
export function moneySum(amounts) {
  /** @type {Map<string, Money>} */
  const sums = new Map()
  for (const one of amounts) {
    const key = `${one.asset} ${one.network} ${one.sandbox === true}`
    const before = sums.get(key)
    sums.set(key, before === undefined ? one : { ...before, amount: decimalSum(before.amount, one.amount) })
  }
  return [...sums.values()]
}

/**
 * Adds two decimal numbers exactly.
 * @param {string} a
 * @param {string} b
 */
export function decimalSum(a, b) {
  const digits = Math.max(fractionOf(a).length, fractionOf(b).length)
  const scaled = (/** @type {string} */ text) => {
    const whole = text.split('.')[0] ?? '0'
    return BigInt(whole + fractionOf(text).padEnd(digits, '0'))
  }
  const sum = (scaled(a) + scaled(b)).toString().padStart(digits + 1, '0')
  if (digits === 0) return sum
  return `${sum.slice(0, -digits)}.${sum.slice(-digits)}`.replace(/\.?0+$/, '')
}

/** @param {string} text */
const fractionOf = (text) => text.split('.')[1] ?? ''

/**
 * The rows of each day of a period, without gaps, oldest first.
 * @param {readonly UsageRow[]} rows
 * @param {string} first A day in UTC
 * @param {string} last
 * @returns {{ day: string, row: UsageRow }[]}
 */
export function perDay(rows, first, last) {
  const days = []
  const end = Date.parse(`${last}T00:00:00Z`)
  for (let at = Date.parse(`${first}T00:00:00Z`); at <= end && days.length < 400; at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10)
    days.push({ day, row: total(rows.filter((row) => row.day === day)) })
  }
  return days
}

/**
 * The rows grouped by one of their fields, most tasks first.
 * @param {readonly UsageRow[]} rows
 * @param {'owner' | 'agent'} field
 * @returns {{ name: string, row: UsageRow }[]}
 */
export function grouped(rows, field) {
  const groups = Map.groupBy(rows, (row) => row[field] ?? '')
  return [...groups]
    .map(([name, members]) => ({ name, row: total(members) }))
    .sort((a, b) => b.row.tasks - a.row.tasks || a.name.localeCompare(b.name))
}
