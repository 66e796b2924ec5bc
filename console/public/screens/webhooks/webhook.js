import { api } from '../../api.js'
import { AgentName } from '../../components/agent-name.js'
import { StateBadge } from '../../components/badge.js'
import { JsonView } from '../../components/code.js'
import { confirm } from '../../components/dialog.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, Facts, Page } from '../../components/page.js'
import { EmptyState, Loading, Notice } from '../../components/states.js'
import { Table } from '../../components/table.js'
import { Id, Text } from '../../components/text.js'
import { durationText, Time } from '../../components/time.js'
import { toast } from '../../components/toast.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf } from '../../router.js'
import { orReload } from '../conflict.js'
import { Dropped, pathOf } from './webhooks.js'

/** @typedef {import('../../../types/answers.js').DeliveryDetail} DeliveryDetail */

/**
 * One webhook of a task: attempts, bodies, resend.
 * @param {{ params: Record<string, string> }} props
 */
export default function Webhook({ params: { agent = '', task = '', config = '' } }) {
  const path = `/operator/deliveries/${pathOf({ agent, task_id: task, config_id: config })}`
  const loaded = useApi(path)
  useLiveReload(['delivery'], loaded.reload, 3000)
  const crumbs = [{ href: '/console/webhooks', text: 'Webhooks' }]
  const resend = (/** @type {number | undefined} */ sequence) => askResend(path, sequence, loaded.reload)
  const actions =
    loaded.data &&
    html`<button type="button" class="button primary" onClick=${() => resend(undefined)}><${Icon} name="reload" />Resend …</button>`
  return html`<${Page} title="Webhook" crumbs=${crumbs} actions=${actions} command=${`npx parley deliveries ${task} --config ${config}`}>
    <${Loading} loaded=${loaded} lines=${8}>
      ${(/** @type {DeliveryDetail} */ detail) => html`<${Content} detail=${detail} resend=${resend} />`}
    <//>
  <//>`
}

/**
 * @param {string} path
 * @param {number | undefined} sequence
 * @param {() => void} reload
 */
function askResend(path, sequence, reload) {
  return confirm({
    title: sequence === undefined ? 'Resend the events of this webhook?' : `Resend from event ${sequence}?`,
    body: html`<p>${sequence === undefined ? 'The dropped events are sent again; if none was dropped, the last one is.' : `Event ${sequence} and all later ones are sent again.`}
      The receiver recognizes an event that it has by its <code>event_id</code>.</p>`,
    action: 'Resend',
    run: async () => {
      const body = sequence === undefined ? {} : { sequence }
      const { events } = await orReload(() => api(`${path}/resend`, { method: 'POST', body }), reload)
      toast(`${events} events are sent again.`)
      reload()
    },
  })
}

/** @param {{ detail: DeliveryDetail, resend: (sequence?: number) => void }} props */
function Content({ detail, resend }) {
  const { url, state, tries, bodies } = detail
  return html`
    ${state === 'failing' && html`<${Notice} tone="bad">The receiver refuses the events: <${Text} value=${detail.last_error} max=${500} />. The agent tries again; correct the receiver, then resend.<//>`}
    ${state === 'dropped' && html`<${Notice} tone="warn">Events were dropped. Correct the receiver, then resend them.<//>`}
    <div class="split">
      <div class="stack">
        <${Card} title="Attempts" id="attempts" padded=${false} footer="The newest attempts, newest first.">
          ${
            tries.length === 0
              ? html`<${EmptyState} title="No attempt yet" icon="waiting">The first event is sent when the task changes.<//>`
              : html`<${Table} caption="Attempts" columns=${attemptColumns} rows=${tries} rowKey=${(/** @type {any} */ one) => `${one.at} ${one.sequence}`} />`
          }
        <//>
        <${Bodies} bodies=${bodies} resend=${resend} />
      </div>
      <${Card} title="About" id="about">
        <${Facts} facts=${[
          ['Receiver', html`<code class="break"><${Text} value=${url} max=${2048} /></code>`],
          ['State', html`<${StateBadge} state=${state} />`],
          [
            'Task',
            html`<${Id} value=${detail.task_id} copies=${true} href=${hrefOf(`/console/tasks/${detail.task_id}`, { agent: detail.agent })} />`,
          ],
          ['Agent', html`<${AgentName} slug=${detail.agent} />`],
          ['Caller', html`<${Text} value=${detail.owner} max=${200} />`],
          ['Form', detail.dialect],
          ['Events', `${detail.settled} of ${detail.events} settled, ${detail.delivered} delivered`],
          ['Dropped', html`<${Dropped} dropped=${detail.dropped} />`],
          ['Attempts', String(detail.attempts)],
          ['Last status', detail.last_status === null ? 'no answer' : String(detail.last_status)],
          ['Set', html`<${Time} at=${detail.set_at} />`],
          ['ID', html`<${Id} value=${detail.config_id} copies=${true} />`],
        ]} />
      <//>
    </div>
  `
}

/** @typedef {DeliveryDetail['tries'][number]} Attempt */

const attemptColumns = [
  { title: 'When', kind: 'narrow', cell: (/** @type {Attempt} */ { at }) => html`<${Time} at=${at} />` },
  { title: 'Event', kind: 'number', cell: (/** @type {Attempt} */ { sequence }) => sequence },
  {
    title: 'Result',
    kind: 'fill',
    cell: (/** @type {Attempt} */ { status, error }) =>
      html`<span class=${error === null ? 'good' : 'bad'}>${status ?? 'no answer'}</span> <span class="muted break"><${Text} value=${error} none="" max=${500} /></span>`,
  },
  { title: 'Took', kind: 'number', cell: (/** @type {Attempt} */ { duration_ms: ms }) => durationText(ms) },
  {
    title: 'Next attempt',
    kind: 'narrow',
    cell: (/** @type {Attempt} */ { next_attempt_at: at }) => html`<${Time} at=${at} none="none" />`,
  },
]

/** @param {{ bodies: DeliveryDetail['bodies'], resend: (sequence: number) => void }} props */
function Bodies({ bodies, resend }) {
  return html`<${Card} title="Bodies" id="bodies" footer="The signature is computed again for each attempt.">
    ${
      bodies.length === 0
        ? html`<${EmptyState} title="No bodies are shown" icon="lock">The task has no events yet, or this gateway does not show texts of others (<code>OPERATOR_READS_TEXTS</code>).<//>`
        : html`<div class="stack-2">
            ${bodies.map(
              ({ sequence, settled, body }) => html`<details key=${sequence} class="disclosure">
                <summary>Event ${sequence} <span class="muted small">${settled ? 'settled' : 'not delivered yet'}</span></summary>
                <div class="stack-2 disclosure-body">
                  <${JsonView} value=${body} open=${2} />
                  <div><button type="button" class="button" onClick=${() => resend(sequence)}>Resend from event ${sequence} …</button></div>
                </div>
              </details>`,
            )}
          </div>`
    }
  <//>`
}
