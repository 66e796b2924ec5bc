import { useEffect, useState } from 'preact/hooks'
import { api, isAborted } from '../../api.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Facts } from '../../components/page.js'
import { ErrorState, Notice } from '../../components/states.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { asApiError, useAction } from '../../load.js'

/**
 * @typedef {object} PaymentSession docs/spec/payments.md#payment-session
 * @property {string} session_id
 * @property {'pending' | 'completed' | 'failed' | 'expired'} status
 * @property {string} amount In whole units
 * @property {string} asset
 * @property {string} network
 * @property {string} pay_to
 * @property {string} expires_at
 * @property {string} capture_url
 * @property {boolean} [sandbox]
 * @property {string} [reason]
 */

/**
 * The terms of a payment and the page where a person pays. Calls `onPaid` when the payment has arrived.
 * @param {{ agent: string, taskId?: string | undefined, onPaid: (session: string) => unknown,
 *   terms?: { amount: string, asset_name: string, network: string, sandbox?: true | undefined } | null }} props
 */
export function PaymentPanel({ agent, taskId, terms, onPaid }) {
  const base = `/agents/${encodeURIComponent(agent)}/api`
  const [paying, setPaying] = useState(/** @type {PaymentSession | undefined} */ (undefined))
  const start = useAction(async () => {
    const body = taskId === undefined ? {} : { task_id: taskId }
    setPaying(await api(`${base}/start-payment-session`, { method: 'POST', body }))
  })
  if (paying === undefined)
    return html`<div class="stack-2">
      ${terms && html`<p>The agent requires <strong class="break"><${Text} value=${terms.amount} /> <${Text} value=${terms.asset_name} /></strong> on <${Text} value=${terms.network} />${terms.sandbox === true && ' (test money)'}.</p>`}
      ${start.error && html`<${ErrorState} error=${start.error} compact=${true} />`}
      <div><button type="button" class="button primary" disabled=${start.running} onClick=${() => start.run()}><${Icon} name="money" />Show the terms and pay …</button></div>
    </div>`
  return html`<${Pending} session=${paying} base=${base} onPaid=${onPaid} again=${() => setPaying(undefined)} />`
}

/** @param {{ session: PaymentSession, base: string, onPaid: (session: string) => unknown, again: () => void }} props */
function Pending({ session, base, onPaid, again }) {
  const { status, error } = useStatus(session, base, onPaid)
  const { amount, asset, network, pay_to: to, expires_at: end, capture_url: page } = session
  const isOpen = status === 'pending'
  return html`<div class="stack-2 boxed">
    <${Facts} facts=${[
      [
        'Amount',
        html`<strong><${Text} value=${amount} max=${60} /></strong>${session.sandbox === true && html` <span class="tag">test money</span>`}`,
      ],
      ['Token', html`<${Id} value=${asset} length=${20} copies=${true} label="token" />`],
      ['Network', html`<${Text} value=${network} max=${60} />`],
      ['To', html`<${Id} value=${to} length=${20} copies=${true} label="receiver" />`],
      ['Until', html`<${Time} at=${end} />`],
    ]} />
    ${error && html`<${ErrorState} error=${error} compact=${true} />`}
    ${
      isOpen &&
      /^https?:\/\//i.test(page) &&
      html`<div class="row"><a class="button primary" href=${page} target="_blank" rel="noopener">Open the payment page<${Icon} name="external" /></a>
      <span class="muted small" role="status">Waiting for the payment …</span></div>`
    }
    ${status === 'completed' && html`<${Notice} tone="good"><span role="status">Paid. The agent continues.</span><//>`}
    ${
      (status === 'failed' || status === 'expired') &&
      html`<${Notice} tone="bad" actions=${html`<button type="button" class="button" onClick=${again}>Try again</button>`}>
      ${status === 'expired' ? 'The payment was not made in time.' : 'The payment failed.'} No message was sent.<//>`
    }
  </div>`
}

/**
 * @param {PaymentSession} session
 * @param {string} base
 * @param {(session: string) => unknown} onPaid
 */
function useStatus({ session_id: id, status: first }, base, onPaid) {
  const [status, setStatus] = useState(first)
  const [error, setError] = useState(/** @type {import('../../api.js').ApiError | undefined} */ (undefined))
  useEffect(() => {
    const abort = new AbortController()
    const watch = async () => {
      let now = first
      while (now === 'pending' && !abort.signal.aborted) {
        const query = { wait: true }
        now = (await api(`${base}/payment-status/${encodeURIComponent(id)}`, { query, signal: abort.signal }))
          .status
      }
      setStatus(now)
      if (now === 'completed') await onPaid(id)
    }
    watch().catch((thrown) => {
      if (!isAborted(thrown)) setError(asApiError(thrown))
    })
    return () => abort.abort()
  }, [id])
  return { status, error }
}
