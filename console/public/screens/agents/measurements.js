import { html } from '../../components/html.js'
import { Bar, Card } from '../../components/page.js'
import { durationText } from '../../components/time.js'

/** @param {number} share */
const percent = (share) =>
  `${(share * 100).toFixed(share > 0.995 && share < 1 ? 2 : 1).replace(/\.0+$/, '')} %`

/**
 * The measurements of the gateway next to the statements of the agent.
 * @param {{ agent: import('./agent.js').Agent }} props
 */
export function Measurements({ agent }) {
  const { measurements, load } = agent
  const declared = declaredMs(agent)
  const rows = [
    [
      'Duration of a task',
      declared === undefined ? 'not stated' : durationText(declared),
      latencyOf(measurements),
      compare(declared, measurements?.latency_p50_ms),
    ],
    ['Success', 'not stated', successOf(measurements), null],
    [
      'Completed tasks',
      '–',
      measurements === null ? 'none yet' : measurements.completed_tasks.toLocaleString('en'),
      null,
    ],
    ['Own examples', '–', examplesOf(agent.example_probe), null],
    ['Now', '–', nowOf(load), null],
  ]
  return html`<${Card} title="Measured and declared" id="measured" padded=${false}
    footer="Measurements of the gateway count for more than statements of the agent when it chooses an agent.">
    <div class="table-wrap" role="region" aria-label="Measured and declared values" tabindex="0">
      <table class="responsive">
        <thead><tr><th scope="col">Value</th><th scope="col">Declared</th><th scope="col">Measured</th></tr></thead>
        <tbody>
          ${rows.map(
            ([name, stated, measured, remark]) => html`<tr key=${name}>
              <th scope="row">${name}</th><td data-label="Declared">${stated}</td>
              <td data-label="Measured">${measured} ${remark}</td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
  <//>`
}

/** @param {import('./agent.js').Agent} agent */
function declaredMs({ skills }) {
  const times = skills.flatMap(({ performance }) => {
    const ms = performance?.avg_processing_time_ms
    return typeof ms === 'number' ? [ms] : []
  })
  return times.length === 0 ? undefined : Math.max(...times)
}

/** @param {import('./agent.js').Agent['measurements']} measurements */
function latencyOf(measurements) {
  if (measurements === null || measurements.latency_p50_ms === null)
    return html`<span class="muted">no samples yet</span>`
  const { latency_p50_ms: p50, latency_p95_ms: p95, samples } = measurements
  return html`${durationText(p50)} <span class="muted small">median, ${durationText(p95)} p95, ${Math.round(samples)} ${Math.round(samples) === 1 ? 'sample' : 'samples'}</span>`
}

/**
 * @param {number | undefined} declared
 * @param {number | null | undefined} measured
 */
function compare(declared, measured) {
  if (declared === undefined || measured === null || measured === undefined || declared <= 0) return null
  const times = measured / declared
  if (times > 1.5)
    return html`<span class="badge" data-tone="warn">${times.toFixed(1)} times the declared value</span>`
  return html`<span class="badge" data-tone="good">as declared</span>`
}

/** @param {import('./agent.js').Agent['measurements']} measurements */
function successOf(measurements) {
  if (measurements === null || measurements.samples === 0)
    return html`<span class="muted">no samples yet</span>`
  const { success_share: share } = measurements
  const tone = share >= 0.95 ? 'good' : share >= 0.8 ? 'warn' : 'bad'
  return html`<span class="stack-2">${percent(share)}<${Bar} share=${share} tone=${tone} /></span>`
}

/** @param {import('./agent.js').Agent['example_probe']} probe */
function examplesOf(probe) {
  if (probe === undefined) return html`<span class="muted">not tried</span>`
  const counts = [
    [probe.completed, 'completed'],
    [probe.failed, 'failed'],
    [probe.timed_out, 'timed out'],
    [probe.needed_input, 'required input'],
    [probe.needed_auth, 'required authentication'],
    [probe.needed_payment, 'required a payment'],
  ]
  const named = counts.flatMap(([count, what]) => (count === 0 ? [] : [`${count} ${what}`]))
  return named.length === 0 ? html`<span class="muted">being tried</span>` : named.join(', ')
}

/** @param {import('./agent.js').Load} load */
function nowOf({ queue_depth: queued, active_tasks: active }) {
  if (queued === null && active === null) return html`<span class="muted">the agent reports no load</span>`
  return `${active ?? 0} running, ${queued ?? 0} queued`
}
