import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { html } from '../../components/html.js'
import { plainText } from '../../components/text.js'
import { durationText } from '../../components/time.js'
import { callers, layOut, others } from './graph-layout.js'

/** @typedef {import('./graph-layout.js').Node} Node */
/** @typedef {import('./graph-layout.js').Call} Call */

const rowHeight = 46
const nodeHeight = 32
/** The smallest distance between two columns. */
const gapMin = 56

/**
 * Parties as boxes, calls as lines from left to right: the wider, the more calls; red, if some failed. Pointing at a party shows its
 * calls alone.
 *
 * @param {{ calls: Call[], agents: { agent: string, status: string }[], title: string }} props
 */
export function CallGraph({ calls, agents, title }) {
  const { ref, width } = useWidth()
  const [focus, setFocus] = useState(/** @type {string | undefined} */ (undefined))
  const graph = useMemo(() => layOut(calls), [calls])
  const health = useMemo(() => new Map(agents.map(({ agent, status }) => [agent, status])), [agents])
  const shape = shapeOf(graph, width)
  const most = Math.max(1, ...graph.edges.map(({ count }) => count))
  const isFaint = (/** @type {Call} */ { from, to }) => focus !== undefined && from !== focus && to !== focus
  const near = new Set(graph.edges.filter((edge) => !isFaint(edge)).flatMap(({ from, to }) => [from, to]))
  const byId = new Map(graph.nodes.map((node) => [node.id, node]))
  return html`<div class="graph" ref=${ref}>
    <svg width=${shape.width} height=${shape.height} viewBox=${`0 0 ${shape.width} ${shape.height}`} role="group" aria-label=${title}>
      <g class="edges">
        ${graph.edges.map((edge) => html`<${Edge} key=${`${edge.from} ${edge.to}`} edge=${edge} byId=${byId} shape=${shape} most=${most} faint=${isFaint(edge)} />`)}
      </g>
      ${graph.nodes.map(
        (node) =>
          html`<${Box} key=${node.id} node=${node} shape=${shape} status=${health.get(node.id)} faint=${focus !== undefined && !near.has(node.id)} setFocus=${setFocus} />`,
      )}
    </svg>
  </div>`
}

/**
 * @typedef {{ width: number, height: number, nodeWidth: number, x: (column: number) => number, y: (row: number) => number }} Shape
 * @param {import('./graph-layout.js').Graph} graph
 * @param {number} available
 * @returns {Shape}
 */
function shapeOf({ columns, rows }, available) {
  const nodeWidth = Math.min(184, Math.max(124, (available - gapMin * (columns - 1)) / columns))
  const width = Math.max(available, columns * (nodeWidth + gapMin) - gapMin)
  const step = columns > 1 ? (width - nodeWidth) / (columns - 1) : 0
  return {
    width,
    height: rows * rowHeight + 8,
    nodeWidth,
    x: (column) => column * step,
    y: (row) => 4 + row * rowHeight + (rowHeight - nodeHeight) / 2,
  }
}

/** @param {{ edge: Call, byId: Map<string, Node>, shape: Shape, most: number, faint: boolean }} props */
function Edge({ edge, byId, shape, most, faint }) {
  const [from, to] = [byId.get(edge.from), byId.get(edge.to)]
  if (from === undefined || to === undefined) return null
  const line = lineOf(from, to, shape)
  const width = 1.25 + 5 * (Math.log1p(edge.count) / Math.log1p(most))
  const failed = edge.errors > 0 ? `, ${edge.errors} failed` : ''
  const speed = edge.p50_ms === null ? '' : `, p50 ${durationText(edge.p50_ms)}`
  const text = `${labelOf(from)} → ${labelOf(to)}: ${edge.count} calls${failed}${speed}`
  return html`<path class="edge" d=${line} stroke-width=${width} data-failed=${edge.errors > 0} data-faint=${faint}><title>${text}</title></path>`
}

/**
 * @param {Node} from
 * @param {Node} to
 * @param {Shape} shape
 */
function lineOf(from, to, { x, y, nodeWidth }) {
  const [y1, y2] = [y(from.row) + nodeHeight / 2, y(to.row) + nodeHeight / 2]
  const [x1, x2] = [x(from.column) + nodeWidth, x(to.column)]
  if (to.column > from.column) {
    const bend = Math.max(24, (x2 - x1) / 2)
    // A line over several columns on one height goes around the boxes between.
    const span = to.column - from.column
    const around = span > 1 && Math.abs(y2 - y1) < rowHeight ? rowHeight * 0.75 : 0
    return `M${x1} ${y1}C${x1 + bend * 0.6} ${y1 - around} ${x2 - bend * 0.6} ${y2 - around} ${x2} ${y2}`
  }
  // A call back, or within a column, leaves and arrives on the right side.
  const right = x(to.column) + nodeWidth
  const bend = 30 + Math.abs(y2 - y1) * 0.25
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${right + bend} ${y2 + 6} ${right} ${y2 + 6}`
}

/** @param {{ node: Node, shape: Shape, status: string | undefined, faint: boolean, setFocus: (id: string | undefined) => void }} props */
function Box({ node, shape, status, faint, setFocus }) {
  const [x, y] = [shape.x(node.column), shape.y(node.row)]
  const isAgent = node.id !== callers && node.id !== others
  const label = labelOf(node)
  const letters = Math.floor((shape.nodeWidth - 34 - 7 * compact(node.calls).length) / 6.7)
  const words = `${label}: ${node.calls} calls${node.errors > 0 ? `, ${node.errors} failed` : ''}${status ? `, ${status}` : ''}`
  const events = {
    onMouseEnter: () => setFocus(node.id),
    onMouseLeave: () => setFocus(undefined),
    onFocus: () => setFocus(node.id),
    onBlur: () => setFocus(undefined),
  }
  const content = html`
    <title>${words}</title>
    <rect class="box" x=${x} y=${y} width=${shape.nodeWidth} height=${nodeHeight} rx="7" data-kind=${isAgent ? 'agent' : 'group'} />
    ${isAgent && html`<circle class="dot" data-status=${status ?? 'unknown'} cx=${x + 13} cy=${y + nodeHeight / 2} r="3.5" />`}
    <text aria-hidden="true" x=${x + (isAgent ? 23 : 12)} y=${y + nodeHeight / 2} dominant-baseline="central">${short(label, letters)}</text>
    <text aria-hidden="true" class="calls" x=${x + shape.nodeWidth - 10} y=${y + nodeHeight / 2} text-anchor="end" dominant-baseline="central">${compact(node.calls)}</text>
  `
  if (!isAgent)
    return html`<g class="node" data-faint=${faint} role="img" aria-label=${words} ...${events}>${content}</g>`
  return html`<a class="node" href=${`/console/agents/${encodeURIComponent(node.id)}`} data-faint=${faint} ...${events}>${content}</a>`
}

/** @param {Node} node */
function labelOf({ id, members }) {
  if (id === callers) return 'Callers'
  return id === others ? `${members} more agents` : plainText(id)
}

/**
 * @param {string} text
 * @param {number} letters
 */
function short(text, letters) {
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text
}

/** @param {number} count */
function compact(count) {
  return count < 1000
    ? String(count)
    : new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 }).format(count)
}

/** The width of an element, as it changes. */
function useWidth() {
  const ref = useRef(/** @type {HTMLElement | null} */ (null))
  const [width, setWidth] = useState(900)
  useEffect(() => {
    if (ref.current === null) return undefined
    const observer = new ResizeObserver(([entry]) =>
      setWidth(Math.max(280, Math.floor(entry?.contentRect.width ?? 900))),
    )
    observer.observe(ref.current)
    return () => observer.disconnect()
  }, [])
  return { ref, width }
}
