import { useState } from 'preact/hooks'
import { api } from '../../api.js'
import { Dialog } from '../../components/dialog.js'
import { Field } from '../../components/filters.js'
import { html } from '../../components/html.js'
import { Card, CommandHint, Facts } from '../../components/page.js'
import { ErrorState } from '../../components/states.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useLiveReload } from '../../live.js'
import { useAction, useApi } from '../../load.js'
import { hrefOf } from '../../router.js'
import { isOperator } from '../../session.js'
import { orReload } from '../conflict.js'
import { AmountCell } from './payments.js'

/**
 * @typedef {import('./payments.js').Payment} Payment
 * @typedef {import('./payments.js').PaymentList} PaymentList
 */

/** The payments that a person has to refund, with what to do. Nothing is shown if there are none. */
export function Orphaned() {
  const loaded = useApi('/operator/payments', { state: 'payment-orphaned', limit: 20 })
  useLiveReload(['payment'], loaded.reload, 5000)
  const [selected, setSelected] = useState(/** @type {Payment | undefined} */ (undefined))
  const list = /** @type {PaymentList | undefined} */ (loaded.data)
  if (list === undefined || list.payments.length === 0) return null
  const count = list.counts['payment-orphaned'] ?? list.payments.length
  const title = isOperator.value ? `To be refunded (${count})` : `You will be refunded (${count})`
  return html`<${Card} id="orphaned" title=${title}
    footer="These payments were settled, but their work failed or never ran. The amounts belong to their payers.">
    <div class="stack">
      ${list.payments.map((payment) => html`<${Refund} key=${payment.payment_id} payment=${payment} record=${() => setSelected(payment)} />`)}
      ${list.next_cursor !== null && html`<p class="muted">More are in the list below.</p>`}
    </div>
    ${selected && html`<${RecordRefund} payment=${selected} reload=${loaded.reload} onClose=${() => setSelected(undefined)} />`}
  <//>`
}

/** @param {{ payment: Payment, record: () => void }} props */
function Refund({ payment, record }) {
  const { payment_id: id, payer, task_id: task, agent, reason, tx_hash: hash, network, asset } = payment
  return html`<div class="stack-2 boxed">
    <div class="row-apart"><${AmountCell} ...${payment} />
      ${isOperator.value && html`<button type="button" class="button" onClick=${record}>Record a refund …</button>`}</div>
    <${Facts} facts=${[
      ['Why', reason && html`<${Text} value=${reason.replaceAll('_', ' ')} max=${500} />`],
      ['To', html`<${Id} value=${payer ?? null} length=${16} copies=${true} label="payer" />`],
      [
        'Token',
        html`<${Id} value=${asset} length=${16} copies=${true} label="token" /> <span class="muted">on <${Text} value=${network} /></span>`,
      ],
      ['Paid by', html`<${Id} value=${hash ?? null} length=${16} copies=${true} label="transaction" />`],
      [
        'Task',
        task &&
          html`<${Id} value=${task} href=${hrefOf(`/console/tasks/${task}`, { agent })} /> <span class="muted">at ${agent}</span>`,
      ],
      ['Since', html`<${Time} at=${payment.created_at} />`],
    ]} />
    ${isOperator.value && html`<${CommandHint} command=${`npx parley payments ${agent} --refunded ${id}`} />`}
  </div>`
}

/** @param {{ payment: Payment, reload: () => void, onClose: () => void }} props */
function RecordRefund({
  payment: { payment_id: id, agent, amount, asset_name: name, payer },
  reload,
  onClose,
}) {
  const [tx, setTx] = useState('')
  const record = useAction(async () => {
    const path = `/agents/${encodeURIComponent(agent)}/payments/${encodeURIComponent(id)}/refunded`
    const body = tx.trim() === '' ? {} : { tx_hash: tx.trim() }
    await orReload(() => api(path, { method: 'POST', body }), reload)
    toast('The refund is recorded.')
    reload()
    onClose()
  })
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault()
    void record.run()
  }
  return html`<${Dialog} title="Record a refund" onClose=${onClose}>
    <form class="stack" onSubmit=${submit}>
      <p>Record the refund first, so that no second operator sends it; of two records only the first succeeds. Then send
        <strong> ${amount} <${Text} value=${name} /></strong> to <code class="break">${payer ?? 'the payer'}</code> with your wallet, and record the transaction on the command line.</p>
      <${Field} label="Transaction (if the money is already sent)" help="The hash of the transaction that pays back.">
        ${(
          /** @type {object} */ field,
        ) => html`<input ...${field} type="text" maxlength="200" spellcheck=${false} autocomplete="off" value=${tx}
          onInput=${(/** @type {any} */ event) => setTx(event.target.value)} />`}
      <//>
      ${record.error && html`<${ErrorState} error=${record.error} compact=${true} />`}
      <${CommandHint} command=${`npx parley payments ${agent} --refunded ${id}${tx.trim() === '' ? '' : ` --tx ${tx.trim()}`}`} />
      <div class="dialog-actions">
        <button type="button" class="button" onClick=${onClose}>Cancel</button>
        <button type="submit" class="button primary" disabled=${record.running}>Record the refund</button>
      </div>
    </form>
  <//>`
}
