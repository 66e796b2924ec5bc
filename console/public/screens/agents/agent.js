import { JsonView } from '../../components/code.js'
import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, Facts, Page } from '../../components/page.js'
import { Loading } from '../../components/states.js'
import { Id, Text } from '../../components/text.js'
import { Time } from '../../components/time.js'
import { useLiveReload } from '../../live.js'
import { useApi } from '../../load.js'
import { hrefOf } from '../../router.js'
import { Actions, Warnings } from './agent-actions.js'
import { Standing } from './agents.js'
import { CardChanges } from './card-changes.js'
import { History } from './history.js'
import { Identity } from './identity.js'
import { Learned } from './learned.js'
import { Measurements } from './measurements.js'
import { RecentWork } from './recent-work.js'
import { Skills } from './skills.js'

/**
 * @typedef {import('./agents.js').AgentSummary} AgentSummary
 * @typedef {{ at: string, field: string, before: unknown, after: unknown }} CardChange
 * @typedef {{ queue_depth: number | null, active_tasks: number | null, latency_p50_ms: number | null,
 *   latency_p95_ms: number | null, completed: number | null, failed: number | null }} Load
 * @typedef {Record<string, any> & { id: string, name: string, description: string }} Skill
 *
 * @typedef {Omit<AgentSummary, 'skills' | 'relay'> & {
 *   id: string, did: string | null, url: string, since: string, left?: string, registered_at: string, revision: string,
 *   keys: string[], token_resource: string, card_changes: CardChange[], proof: string | null,
 *   quarantine: { since: string, reason: string, by: 'gateway' | 'operator', until: string | null } | null,
 *   lease_until: string, load: Load, replicas: { id: string, last_seen: string, load: Load }[],
 *   measurements: { samples: number, completed_tasks: number, success_share: number,
 *     latency_p50_ms: number | null, latency_p95_ms: number | null } | null,
 *   example_probe?: { at: string, completed: number, failed: number, needed_input: number, needed_auth: number,
 *     needed_payment: number, timed_out: number },
 *   skills: Skill[], card: Record<string, any>,
 *   relay?: { dialect: string, version: string | null, streaming: boolean, security: string[],
 *     card_signature: { verified: boolean, kid?: string, reason?: string } },
 * }} Agent
 */

/**
 * One agent: what it states, what the gateway measured, and its identity.
 * @param {{ params: Record<string, string> }} props
 */
export default function AgentScreen({ params: { id = '' } }) {
  const loaded = useApi(`/registry/agents/${encodeURIComponent(id)}`)
  useLiveReload(['agent'], loaded.reload, 5000)
  const { data } = loaded
  const crumbs = [{ href: '/console/agents', text: 'Agents' }]
  const title = data === undefined ? id : html`<${Text} value=${data.name} max=${120} />`
  return html`<${Page} title=${title} name=${data?.name ?? id} crumbs=${crumbs} command=${`npx parley agents --query ${id} --json`}
    actions=${data && html`<${Actions} agent=${data} reload=${loaded.reload} change=${loaded.change} />`}>
    <${Loading} loaded=${loaded} lines=${10}>
      ${(/** @type {Agent} */ agent) => html`<${Content} agent=${agent} reload=${loaded.reload} change=${loaded.change} />`}
    <//>
  <//>`
}

/** @param {{ agent: Agent, reload: () => void, change: (agent: Agent) => void }} props */
function Content({ agent, reload, change }) {
  return html`
    <${Warnings} agent=${agent} reload=${reload} change=${change} />
    <p class="muted"><${Text} value=${agent.description} none="The card has no description." max=${2000} /></p>
    <div class="split">
      <div class="stack">
        ${agent.card_changes.length > 0 && html`<${CardChanges} agent=${agent} />`}
        <${Measurements} agent=${agent} />
        <${Skills} agent=${agent} />
        <${RecentWork} slug=${agent.slug} />
        <${Card} title="Card" id="card">
          <p class="muted small">The agent card as the agent states it, with its address at the gateway.</p>
          <${JsonView} value=${agent.card} open=${1} />
        <//>
      </div>
      <div class="stack">
        <${About} agent=${agent} />
        <${Identity} agent=${agent} />
        <${Learned} slug=${agent.slug} />
        <${History} agent=${agent} />
      </div>
    </div>
  `
}

/** @param {{ agent: Agent }} props */
function About({ agent }) {
  const { slug, relay, card } = agent
  const tryIt = hrefOf('/console/try', { agent: slug })
  return html`<${Card} title="About" id="about" actions=${html`<a class="button" href=${tryIt}><${Icon} name="chat" />Try it</a>`}>
    <${Facts} facts=${[
      ['Status', html`<${Standing} agent=${agent} />`],
      ['Name', html`<code>${slug}</code>`],
      ['Address', html`<code class="break">${agent.url}</code>`],
      [
        'Version',
        typeof card['version'] === 'string'
          ? html`<${Text} value=${card['version']} max=${60} />`
          : undefined,
      ],
      ['Runs', runsOf(agent)],
      [
        'Protocol',
        relay &&
          `${relay.dialect}${relay.version === null ? '' : ` ${relay.version}`}${relay.streaming ? ', streaming' : ''}`,
      ],
      [
        'Credential',
        relay && (relay.security.length > 0 ? `required: ${relay.security.join(', ')}` : 'none required'),
      ],
      ['Price', html`<${Price} card=${card} />`],
      ['Registered', html`<${Time} at=${agent.registered_at} />`],
      ['Last seen', html`<${Time} at=${agent.last_seen} none="never" />`],
      ['Processes', agent.replicas.length > 1 ? String(agent.replicas.length) : undefined],
      ['Revision', html`<${Id} value=${agent.revision} copies=${true} label="revision" />`],
    ]} />
  <//>`
}

/** @param {Agent} agent */
function runsOf({ origin, external, relay }) {
  if (relay !== undefined) return 'elsewhere, called through the relay'
  if (origin === 'supervised') return 'in this deployment, started by the gateway'
  return external ? 'elsewhere' : 'elsewhere, as part of this deployment'
}

/** @param {{ card: Record<string, any> }} props */
function Price({ card }) {
  const prices = [card['executionCost'] ?? []]
    .flat()
    .filter((price) => typeof price === 'object' && price !== null)
  if (prices.length === 0) return html`free`
  return html`${prices.slice(0, 10).map(
    (price, index) => html`<div key=${index}>
      <strong><${Text} value=${String(price.amount ?? '?')} max=${60} /></strong>
      ${' '}<${Token} price=${price} />
      <span class="muted small"> on <${Text} value=${String(price.network ?? '?')} max=${60} />${price.sandbox === true && ', test money'}</span>
    </div>`,
  )}`
}

/** @param {{ price: Record<string, any> }} props */
function Token({ price: { extra, asset } }) {
  if (typeof extra?.name === 'string') return html`<${Text} value=${extra.name} max=${40} />`
  return html`<${Id} value=${String(asset ?? '?')} length=${14} copies=${true} label="token" />`
}
