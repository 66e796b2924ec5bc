import { html } from './html.js'
import { Icon } from './icon.js'
import { plainText } from './text.js'

/** @typedef {{ tone: import('../../types/answers.js').Tone, icon: import('./icon.js').IconName, label: string }} Look */

/** The states of tasks. Each has its own symbol, so that colour is never the only difference. */
const states = /** @type {Record<string, Look>} */ ({
  submitted: { tone: 'quiet', icon: 'circle', label: 'Queued' },
  working: { tone: 'info', icon: 'half', label: 'Working' },
  'input-required': { tone: 'warn', icon: 'question', label: 'Needs input' },
  'auth-required': { tone: 'warn', icon: 'lock', label: 'Needs sign-in' },
  'payment-required': { tone: 'violet', icon: 'money', label: 'Needs payment' },
  'negotiation-bid-submitted': { tone: 'violet', icon: 'question', label: 'Offer to accept' },
  completed: { tone: 'good', icon: 'check', label: 'Completed' },
  failed: { tone: 'bad', icon: 'cross', label: 'Failed' },
  rejected: { tone: 'bad', icon: 'slash', label: 'Rejected' },
  canceled: { tone: 'quiet', icon: 'slash', label: 'Canceled' },
})

/** Words of other lists: health, deliveries, payments, decisions. */
const words = /** @type {Record<string, Look>} */ ({
  waiting: { tone: 'warn', icon: 'waiting', label: 'Waiting for a person' },
  ready: { tone: 'good', icon: 'check', label: 'Ready' },
  unknown: { tone: 'quiet', icon: 'question', label: 'Not known' },
  starting: { tone: 'info', icon: 'half', label: 'Starting' },
  unreachable: { tone: 'bad', icon: 'cross', label: 'Unreachable' },
  quarantined: { tone: 'bad', icon: 'slash', label: 'Quarantined' },
  applied: { tone: 'warn', icon: 'question', label: 'Not admitted' },
  delivered: { tone: 'good', icon: 'check', label: 'Delivered' },
  pending: { tone: 'info', icon: 'circle', label: 'Pending' },
  failing: { tone: 'bad', icon: 'alert', label: 'Failing' },
  dropped: { tone: 'bad', icon: 'cross', label: 'Dropped' },
  settled: { tone: 'good', icon: 'check', label: 'Settled' },
  refunded: { tone: 'quiet', icon: 'left', label: 'Refunded' },
  orphaned: { tone: 'bad', icon: 'alert', label: 'Orphaned' },
  accepted: { tone: 'good', icon: 'check', label: 'Accepted' },
  none: { tone: 'warn', icon: 'question', label: 'No agent' },
  answered: { tone: 'info', icon: 'check', label: 'Answered' },
})

const paused = new Set(['input-required', 'auth-required', 'payment-required', 'negotiation-bid-submitted'])
const ended = new Set(['completed', 'failed', 'rejected', 'canceled'])

/** The states by which lists are filtered. */
export const stateNames = Object.keys(states)

/** @param {string} state */
export function isEnded(state) {
  return ended.has(state)
}

/**
 * Whether a task in this state waits for a person or a payment.
 *
 * @param {string} state
 */
export function isPaused(state) {
  return paused.has(state)
}

/**
 * @param {string} state
 * @returns {Look}
 */
export function lookOf(state) {
  return states[state] ?? words[state] ?? { tone: 'quiet', icon: 'dot', label: plainText(state.slice(0, 40)) }
}

/**
 * The state of a task, agent, delivery or payment.
 *
 * @param {{ state: string, label?: string, tone?: import('../../types/answers.js').Tone }} props
 */
export function StateBadge({ state, label, tone }) {
  const look = lookOf(state)
  return html`<span class="badge" data-tone=${tone ?? look.tone}><${Icon} name=${look.icon} />${label ?? look.label}</span>`
}

/**
 * Any other short fact.
 *
 * @param {{ tone?: import('../../types/answers.js').Tone, icon?: import('./icon.js').IconName,
 *   children: import('preact').ComponentChildren }} props
 */
export function Badge({ tone = 'quiet', icon, children }) {
  return html`<span class="badge" data-tone=${tone}>${icon && html`<${Icon} name=${icon} />`}<span>${children}</span></span>`
}
