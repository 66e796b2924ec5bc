import { useEffect, useState } from 'preact/hooks'
import { html } from './html.js'
import { Icon } from './icon.js'
import { Text } from './text.js'

/**
 * The content of a list without entries: the reason and the next step.
 *
 * @param {{ title: string, icon?: import('./icon.js').IconName, children?: import('preact').ComponentChildren,
 *   action?: import('preact').ComponentChildren }} props
 */
export function EmptyState({ title, icon = 'circle', children, action }) {
  return html`<div class="state-page">
    <${Icon} name=${icon} /><p class="strong">${title}</p>
    ${children && html`<p>${children}</p>`}${action}
  </div>`
}

/**
 * An error as a sentence, with what to do next. After 429 and 503 it tries again at the time that the server states.
 *
 * @param {{ error: import('../api.js').ApiError, retry?: () => void, compact?: boolean }} props
 */
export function ErrorState({ error, retry, compact = false }) {
  const left = useCountdown(error, retry)
  const details = html`<${ErrorDetails} error=${error} />`
  const again =
    retry &&
    html`<button type="button" class="button" onClick=${retry}>
      <${Icon} name="reload" />${left === undefined ? 'Try again' : `Trying again in ${left} s`}
    </button>`
  if (compact)
    return html`<div class="notice" data-tone="bad" role="alert">
      <${Icon} name="alert" /><div class="grow"><${Sentence} error=${error} />${details}</div>${again}
    </div>`
  return html`<div class="state-page" role="alert">
    <${Icon} name="alert" /><${Sentence} error=${error} />${details}${again}
  </div>`
}

/** @param {{ error: import('../api.js').ApiError }} props */
function Sentence({ error }) {
  return html`<p><strong><${Text} value=${error.message} max=${600} /></strong> ${error.next}</p>`
}

/** @param {{ error: import('../api.js').ApiError }} props */
function ErrorDetails({ error }) {
  const { issues, reason, code, requestId } = error
  const codes = [
    code && `code ${code}`,
    reason && `reason ${reason}`,
    requestId && `request ${requestId}`,
  ].filter(Boolean)
  return html`
    ${
      issues.length > 0 &&
      html`<ul>
      ${issues.slice(0, 10).map((issue) => html`<li key=${issue.path}><code>${issue.path}</code> <${Text} value=${issue.message} /></li>`)}
    </ul>`
    }
    ${codes.length > 0 && html`<div class="small faint break">${codes.join(' · ')}</div>`}
  `
}

/**
 * @param {import('../api.js').ApiError} error
 * @param {(() => void) | undefined} retry
 */
function useCountdown(error, retry) {
  const [left, setLeft] = useState(/** @type {number | undefined} */ (undefined))
  useEffect(() => {
    if (retry === undefined || error.retryAfterS === undefined || error.retryAfterS > 120)
      return setLeft(undefined)
    const end = Date.now() + error.retryAfterS * 1000
    const tick = () => {
      const seconds = Math.ceil((end - Date.now()) / 1000)
      setLeft(Math.max(0, seconds))
      if (seconds > 0) return
      clearInterval(timer)
      retry()
    }
    const timer = setInterval(tick, 1000)
    tick()
    return () => clearInterval(timer)
  }, [error, retry])
  return left
}

/** @param {{ lines?: number, label?: string }} props */
export function Skeleton({ lines = 4, label = 'Loading' }) {
  const widths = ['92%', '78%', '86%', '64%']
  return html`<div class="stack" role="status" aria-label=${label}>
    ${Array.from({ length: lines }, (_, index) => html`<span key=${index} class="skeleton" style=${{ width: widths[index % 4] }}></span>`)}
  </div>`
}

/**
 * The content of something loaded: a skeleton, the error, or `children(data)`. After a failed reload the old content stays.
 *
 * @template T
 * @param {{ loaded: import('../load.js').Loaded<T>, lines?: number,
 *   children: (data: T) => import('preact').ComponentChildren }} props
 */
export function Loading({ loaded, lines, children }) {
  const { data, error, reload } = loaded
  if (data === undefined && error === undefined)
    return html`<div class="card-body"><${Skeleton} lines=${lines} /></div>`
  if (data === undefined) return html`<${ErrorState} error=${error} retry=${reload} />`
  return html`${error && html`<${ErrorState} error=${error} retry=${reload} compact=${true} />`}${children(data)}`
}

/**
 * A remark in the page that needs attention.
 *
 * @param {{ tone?: import('../../types/answers.js').Tone, actions?: import('preact').ComponentChildren,
 *   children: import('preact').ComponentChildren }} props
 */
export function Notice({ tone = 'info', actions, children }) {
  const icon = tone === 'good' ? 'check' : tone === 'info' ? 'info' : 'alert'
  return html`<div class="notice" data-tone=${tone}><${Icon} name=${icon} /><div class="grow">${children}</div>${actions}</div>`
}

/**
 * Agents without entries in an answer, because they could not be read.
 *
 * @param {{ unread: { agent: string, reason: string }[] | undefined }} props
 */
export function Unread({ unread = [] }) {
  if (unread.length === 0) return null
  const names = unread.length === 1 ? `the agent ${unread[0]?.agent}` : `${unread.length} agents`
  return html`<${Notice} tone="warn">
    <details>
      <summary>The entries of <${Text} value=${names} /> are missing from this list.</summary>
      <ul>
        ${unread.slice(0, 50).map(({ agent, reason }) => html`<li key=${agent}><strong><${Text} value=${agent} /></strong>: <${Text} value=${reason} /></li>`)}
      </ul>
    </details>
  <//>`
}
