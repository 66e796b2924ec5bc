import { html } from '../../components/html.js'

/**
 * Bars of the tasks of each day, with the failed ones at the base. The table below says the same in figures.
 * @param {{ days: { day: string, row: import('./usage-sums.js').UsageRow }[] }} props
 */
export function DayChart({ days }) {
  const [width, height, base] = [720, 140, 118]
  const most = Math.max(1, ...days.map(({ row }) => row.tasks))
  const step = width / days.length
  const bar = Math.max(2, Math.min(48, step * 0.62))
  const labels = Math.ceil(days.length / 8)
  const failed = days.reduce((sum, { row }) => sum + row.failed, 0)
  const all = days.reduce((sum, { row }) => sum + row.tasks, 0)
  return html`<svg class="day-chart" viewBox=${`0 0 ${width} ${height}`} role="img"
    aria-label=${`${all} tasks in ${days.length} days, ${failed} of them failed, at most ${most} on a day`}>
    <line x1="0" x2=${width} y1=${base} y2=${base} class="axis" />
    ${days.map(({ day, row }, index) => {
      const x = index * step + (step - bar) / 2
      const tall = row.tasks === 0 ? 0 : Math.max(2, (row.tasks / most) * (base - 28))
      const bad = (Math.min(row.failed, row.tasks) / Math.max(1, row.tasks)) * tall
      return html`<g key=${day}>
        <title>${`${day}: ${row.tasks} tasks, ${row.failed} failed`}</title>
        <rect x=${x} y=${base - tall} width=${bar} height=${tall} rx="2" class="bar-tasks" />
        <rect x=${x} y=${base - bad} width=${bar} height=${bad} class="bar-failed" />
        ${days.length <= 14 && row.tasks > 0 && html`<text x=${x + bar / 2} y=${base - tall - 5} text-anchor="middle">${row.tasks}</text>`}
        ${index % labels === 0 && html`<text x=${x + bar / 2} y=${base + 16} text-anchor="middle" class="faint">${day.slice(5)}</text>`}
      </g>`
    })}
  </svg>`
}
