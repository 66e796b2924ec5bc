import { useState } from 'preact/hooks'
import { isEnded, lookOf, StateBadge } from '../../components/badge.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card } from '../../components/page.js'
import { Notice } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { plainText, Text } from '../../components/text.js'
import { clockText, durationText, now } from '../../components/time.js'
import { hrefOf } from '../../router.js'
import { lanesOf, spanNames, ticksOf } from './spans.js'

/**
 * @typedef {import('../../../types/answers.js').TaskDetail} TaskDetail
 * @typedef {import('./spans.js').Lane} Lane
 * @typedef {import('./spans.js').Span} Span
 */

/**
 * The time axis over all agents of a chain: per task a lane, with queue wait apart from work. The table says the same.
 *
 * @param {{ task: TaskDetail }} props
 */
export function Timeline({ task }) {
  const [fit, setFit] = useState('chain')
  const [view, setView] = useState('axis')
  const chain = task.chain.length > 0 ? task.chain : [alone(task)]
  const isOpen = chain.some(({ state }) => !isEnded(state))
  const lanes = lanesOf(chain, task.clock_skew_ms, isOpen ? now.value : Date.now())
  const own = lanes.find((lane) => lane.task.task_id === task.task_id)
  const shown = fit === 'task' && own !== undefined ? [own] : lanes
  const from = Math.min(...shown.map((lane) => lane.from))
  const last = Math.max(...shown.map((lane) => lane.to), from + 1)
  // A margin, so that marks at the end are not cut.
  const to = Math.min(last + (last - from) * 0.012, endOfAxis(shown, from))
  const button = (
    /** @type {string} */ text,
    /** @type {boolean} */ pressed,
    /** @type {() => void} */ set,
  ) =>
    html`<button type="button" class="button tiny" aria-pressed=${pressed ? 'true' : 'false'} onClick=${set}>${text}</button>`
  const actions = html`<span class="row" role="group" aria-label="Time axis">
    ${lanes.length > 1 && button('Whole chain', fit === 'chain', () => setFit('chain'))}
    ${lanes.length > 1 && button('This task', fit === 'task', () => setFit('task'))}
    ${button('Table', view === 'table', () => setView(view === 'table' ? 'axis' : 'table'))}
  </span>`
  const title = html`Time axis <span class="muted small">${durationText(last - from)}</span>`
  return html`<${Card} id="timeline" title=${title} actions=${actions} padded=${view === 'axis'} footer=${html`<${Footer} lanes=${lanes} task=${task} isCut=${to < last} />`}>
    ${
      view === 'axis'
        ? html`<${Axis} lanes=${lanes} from=${from} to=${to} current=${task.task_id} />`
        : html`<${SpanTable} lanes=${shown} from=${from} />`
    }
  <//>`
}

/**
 * A wait that has not ended would squeeze everything before it, so the axis ends soon after the last change.
 *
 * @param {Lane[]} lanes
 * @param {number} from
 */
function endOfAxis(lanes, from) {
  const isWaiting = (/** @type {Span} */ { open, kind }) => open === true && kind !== 'work'
  if (lanes.some(({ spans }) => spans.some((span) => span.open === true && span.kind === 'work')))
    return Infinity
  const changes = lanes.flatMap(({ spans, marks }) => [
    ...spans.map((span) => (isWaiting(span) ? span.from : span.to)),
    ...marks.map(({ at }) => at),
  ])
  const last = Math.max(...changes, from)
  return last === from ? Infinity : last + (last - from) * 0.25
}

/** @param {TaskDetail} task */
function alone(task) {
  const { agent, task_id, state, created_at, updated_at, events, runs, webhooks, payments } = task
  return {
    agent,
    task_id,
    parent_id: null,
    state,
    created_at,
    updated_at,
    events,
    runs,
    webhooks,
    payments,
  }
}

/** @param {{ lanes: Lane[], from: number, to: number, current: string }} props */
function Axis({ lanes, from, to, current }) {
  const length = to - from
  const place = (/** @type {number} */ time) => `${((time - from) / length) * 100}%`
  const ticks = ticksOf(length, window.innerWidth < 768 ? 3 : 7)
  return html`<div class="axis" role="group" aria-label="Time axis. The table shows the same.">
    <div class="axis-ticks" aria-hidden="true">
      ${ticks.map((tick) => html`<span key=${tick} style=${{ left: `${(tick / length) * 100}%` }} title=${clockText(from + tick, { ms: true })}>${tickText(tick)}</span>`)}
    </div>
    ${lanes.map(
      (
        lane,
      ) => html`<div class="lane" key=${`${lane.task.agent} ${lane.task.task_id}`} data-current=${lane.task.task_id === current}>
        <${LaneName} lane=${lane} isCurrent=${lane.task.task_id === current} />
        <div class="lane-track">
          ${ticks.map((tick) => html`<i key=${tick} class="tick" style=${{ left: `${(tick / length) * 100}%` }}></i>`)}
          ${lane.spans.map((span, index) => html`<${Bar} key=${index} span=${span} from=${from} to=${to} />`)}
          ${lane.marks
            .filter(({ at }) => at >= from && at <= to)
            .map(
              (
                mark,
                index,
              ) => html`<span key=${index} class="mark" data-kind=${mark.kind} data-tone=${mark.kind === 'end' ? lookOf(mark.tone).tone : mark.tone}
                style=${{ left: place(mark.at) }} title=${`${plainText(mark.label)} · ${clockText(mark.at, { ms: true })}`}></span>`,
            )}
        </div>
      </div>`,
    )}
  </div>`
}

/** @param {{ lane: Lane, isCurrent: boolean }} props */
function LaneName({ lane, isCurrent }) {
  const { task, depth } = lane
  const href = hrefOf(`/console/tasks/${encodeURIComponent(task.task_id)}`, { agent: task.agent })
  const name = html`<${Text} value=${task.agent} max=${80} />`
  return html`<div class="lane-name" style=${{ paddingInlineStart: `${Math.min(depth, 6) * 0.9}rem` }}>
    ${depth > 0 && html`<span class="faint" aria-hidden="true">└</span>`}
    <span class="truncate">${isCurrent ? html`<strong>${name}</strong>` : html`<a href=${href}>${name}</a>`}</span>
    <span class=${lookOf(task.state).tone}><${Icon} name=${lookOf(task.state).icon} label=${lookOf(task.state).label} /></span>
    <span class="faint small nowrap">${durationText(lane.to - lane.from)}</span>
  </div>`
}

/** @param {{ span: Span, from: number, to: number }} props */
function Bar({ span, from, to }) {
  const [start, end] = [Math.max(span.from, from), Math.min(span.to, to)]
  if (end < start) return null
  const length = to - from
  const style = { left: `${((start - from) / length) * 100}%`, width: `${((end - start) / length) * 100}%` }
  const title = `${spanNames[span.kind]}: ${durationText(span.to - span.from)}, from ${clockText(span.from, { ms: true })}${span.open ? ', still going on' : ''}`
  return html`<span class="span" data-kind=${span.kind} data-open=${span.open === true} style=${style} title=${title}></span>`
}

/** @param {{ lanes: Lane[], from: number }} props */
function SpanTable({ lanes, from }) {
  const rows = lanes.flatMap((lane) => {
    const spans = lane.spans.map(({ kind, open, from: begins, to }) => {
      return {
        what: `${spanNames[kind]}${open ? ' (still)' : ''}`,
        begins,
        duration: durationText(to - begins),
      }
    })
    const marks = lane.marks.map(({ kind, label, at }) => {
      return { what: kind === 'end' ? lookOf(label).label : label, begins: at, duration: '' }
    })
    const inOrder = [...spans, ...marks].sort((a, b) => a.begins - b.begins)
    return inOrder.map((row, index) => ({
      ...row,
      lane,
      id: `${lane.task.agent} ${lane.task.task_id} ${index}`,
    }))
  })
  /** @type {import('../../components/table.js').Column<typeof rows[number]>[]} */
  const columns = [
    {
      title: 'Agent',
      kind: 'max',
      label: false,
      cell: ({ lane }) => html`<span class="truncate"><${Text} value=${lane.task.agent} /></span>`,
    },
    { title: 'State', kind: 'narrow', cell: ({ lane }) => html`<${StateBadge} state=${lane.task.state} />` },
    {
      title: 'What happens',
      kind: 'fill',
      cell: ({ what }) => html`<${Text} value=${what} max=${200} />`,
    },
    { title: 'Begins', kind: 'number', cell: ({ begins }) => clockText(begins, { ms: true }) },
    { title: 'After', kind: 'number', cell: ({ begins }) => durationText(begins - from) },
    { title: 'Duration', kind: 'number', cell: ({ duration }) => duration },
  ]
  return html`<${Table} caption="Time axis as a table" columns=${columns} rows=${rows} rowKey=${(/** @type {typeof rows[number]} */ { id }) => id} />`
}

/** The legend, the totals and the corrected clocks. */
function Footer(/** @type {{ lanes: Lane[], task: TaskDetail, isCut: boolean }} */ { lanes, task, isCut }) {
  const kinds = new Set(lanes.flatMap(({ spans }) => spans.map(({ kind }) => kind)))
  const marks = new Set(lanes.flatMap((lane) => lane.marks.map(({ kind }) => kind)))
  const names = { artifact: 'artifact', payment: 'payment', webhook: 'last attempt of a webhook' }
  const skewed = Object.entries(task.clock_skew_ms).filter(([, ms]) => Math.abs(ms) >= 50)
  return html`<div class="stack-2">
    <ul class="legend">
      ${[...kinds].map((kind) => html`<li key=${kind}><span class="span" data-kind=${kind}></span>${spanNames[kind]}</li>`)}
      ${Object.entries(names).map(([kind, name]) => marks.has(/** @type {any} */ (kind)) && html`<li key=${kind}><span class="mark" data-kind=${kind}></span>${name}</li>`)}
    </ul>
    ${isCut && html`<p>The axis ends soon after the last change. The wait at its right edge still goes on.</p>`}
    ${
      skewed.length > 0 &&
      html`<p>Corrected clocks: ${skewed.slice(0, 5).map(([agent, ms], index) => html`<span key=${agent}>${index > 0 && ', '}<${Text} value=${agent} max=${60} /> by ${durationText(Math.abs(ms))} (${ms > 0 ? 'ahead' : 'behind'})</span>`)}</p>`
    }
    ${
      task.unread.length > 0 &&
      html`<${Notice} tone="warn">Some tasks of this chain could not be read: ${task.unread.map(({ agent, reason }) => html`<span key=${agent}><${Text} value=${agent} max=${60} />: <${Text} value=${reason} /> </span>`)}<//>`
    }
  </div>`
}

/** @param {number} ms */
function tickText(ms) {
  return ms === 0
    ? '0'
    : durationText(ms)
        .replace('.0 s', ' s')
        .replace(/ 0 (s|min)$/, '')
}
