import { CopyButton } from '../../components/copy-button.js'
import { html } from '../../components/html.js'
import { Card } from '../../components/page.js'
import { EmptyState } from '../../components/states.js'
import { Text } from '../../components/text.js'
import { clockText } from '../../components/time.js'
import { session } from '../../session.js'
import { curlOf, readableJson } from './requests.js'

/** @typedef {import('./exchanges.js').Exchange} Exchange */

/**
 * Each request of the conversation next to its answer, newest first.
 * @param {{ exchanges: Exchange[] }} props
 */
export function Raw({ exchanges }) {
  if (exchanges.length === 0)
    return html`<${Card}><${EmptyState} title="No request yet" icon="send">Send a message. The request and its answer appear here unchanged.<//><//>`
  return html`<div class="stack">${exchanges.map((exchange) => html`<${ExchangeView} key=${exchange.id} exchange=${exchange} />`)}</div>`
}

/** @param {{ exchange: Exchange }} props */
function ExchangeView({ exchange }) {
  const { request, path, at, status, headers, received, omitted, done } = exchange
  const base = session.value?.gateway.url ?? location.origin
  const id = `exchange-${exchange.id}`
  const title = html`${request.method} <span class="muted small">${clockText(at)}</span>`
  const curl = html`<${CopyButton} text=${() => curlOf(`${base}${path}`, request)} label="Copy as curl">Copy as curl<//>`
  return html`<${Card} title=${title} id=${id} actions=${curl}>
    <div class="side-by-side">
      <div class="stack-2"><h3>Request</h3><pre class="code wrap raw" tabindex="0" aria-label="Request">${`POST ${path}\n\n`}<${Text} value=${readableJson(request)} max=${100_000} /></pre></div>
      <div class="stack-2"><h3>Response ${!done && html`<span class="muted small" role="status">receiving …</span>`}</h3>
        <pre class="code wrap raw" tabindex="0" aria-label="Response">${status === undefined ? '' : `HTTP ${status}\n`}${headerText(headers)}<${Text} value=${bodyText(received, omitted)} none="" max=${200_000} /></pre></div>
    </div>
  <//>`
}

/** @param {Record<string, string>} headers */
const headerText = (headers) =>
  `${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\n`)
    .join('')}\n`

/**
 * @param {readonly string[]} received
 * @param {number} omitted
 */
function bodyText(received, omitted) {
  const texts = received.map((text) => {
    try {
      return readableJson(JSON.parse(text))
    } catch {
      return text.slice(0, 20_000)
    }
  })
  return texts.join('\n\n') + (omitted > 0 ? `\n\n… and ${omitted} more frames` : '')
}
