import { html } from '../../components/html.js'
import { Icon } from '../../components/icon.js'
import { Card, CommandHint } from '../../components/page.js'
import { Id, Text } from '../../components/text.js'
import { session } from '../../session.js'

/**
 * @typedef {'yes' | 'no' | 'none'} Proof
 * @typedef {{ title: string, holds: Proof, text: unknown, detail?: unknown }} Link
 */

/**
 * The chain from the name of the agent to the statement of the gateway.
 * @param {{ agent: import('./agent.js').Agent }} props
 */
export function Identity({ agent }) {
  const links = [didLink(agent), keyLink(agent), cardLink(agent), vouchingLink(agent)]
  return html`<${Card} title="Identity" id="identity"
    footer=${html`<${CommandHint} command=${`npx parley verify --card ${cardUrl(agent)}`} />`}>
    <ol class="chain">
      ${links.map(
        ({ title, holds, text, detail }) => html`<li key=${title} class="chain-link" data-holds=${holds}>
          <${Icon} name=${iconOf(holds)} label=${labelOf(holds)} />
          <div class="stack-2"><h3>${title}</h3><p class="muted small">${text}</p>${detail}</div>
        </li>`,
      )}
    </ol>
  <//>`
}

/** @param {Proof} holds */
const iconOf = (holds) => (holds === 'yes' ? 'check' : holds === 'no' ? 'alert' : 'circle')
/** @param {Proof} holds */
const labelOf = (holds) => (holds === 'yes' ? 'Proven' : holds === 'no' ? 'Attention' : 'Absent')

/** @param {import('./agent.js').Agent} agent */
const cardUrl = ({ url }) => `${url}/.well-known/agent-card.json`

/**
 * @param {import('./agent.js').Agent} agent
 * @returns {Link}
 */
function didLink({ did, url }) {
  if (did === null)
    return {
      title: 'DID',
      holds: 'none',
      text: 'The agent has no DID. It is known by its address only.',
      detail: html`<code class="small break">${url}</code>`,
    }
  return {
    title: 'DID',
    holds: 'yes',
    text: 'The name of the agent, whatever its address.',
    detail: html`<${Id} value=${did} length=${24} copies=${true} label="DID" />`,
  }
}

/**
 * @param {import('./agent.js').Agent} agent
 * @returns {Link}
 */
function keyLink({ keys, verified, did }) {
  const title = keys.length === 1 ? 'Key' : 'Keys'
  const detail = keys
    .slice(0, 10)
    .map((key) => html`<div key=${key}><${Id} value=${key} length=${24} copies=${true} label="key" /></div>`)
  if (verified && keys.length > 0)
    return {
      title,
      holds: 'yes',
      text: 'The agent has proven to the gateway that it holds this key.',
      detail,
    }
  if (did === null) return { title, holds: 'none', text: 'Without a DID, there is no key to prove.' }
  return {
    title,
    holds: 'no',
    text: 'The agent has not proven that it holds the key of its DID. Another server could use the same DID.',
    detail,
  }
}

/**
 * @param {import('./agent.js').Agent} agent
 * @returns {Link}
 */
function cardLink({ relay, card }) {
  const title = 'Card signature'
  const signature = relay?.card_signature
  if (signature?.verified === true)
    return {
      title,
      holds: 'yes',
      text: 'The card is signed by this key.',
      detail: html`<${Id} value=${signature.kid} length=${24} copies=${true} label="key" />`,
    }
  if (signature !== undefined)
    return {
      title,
      holds: signature.reason === 'unsigned' ? 'none' : 'no',
      text: signatureText(signature.reason),
    }
  const count = Array.isArray(card['signatures']) ? card['signatures'].length : 0
  if (count > 0)
    return {
      title,
      holds: 'yes',
      text: `The card carries ${count === 1 ? 'a signature' : `${count} signatures`}. The command below verifies ${count === 1 ? 'it' : 'them'}.`,
    }
  return {
    title,
    holds: 'none',
    text: 'This form of the card carries no signature. The agent signs the form for A2A clients.',
  }
}

/** @param {string | undefined} reason */
const signatureText = (reason) =>
  reason === 'unsigned'
    ? 'The card is not signed.'
    : html`The signature of the card is not valid: <${Text} value=${reason?.replaceAll('_', ' ')} max=${60} />.`

/**
 * @param {import('./agent.js').Agent} agent
 * @returns {Link}
 */
function vouchingLink(agent) {
  const title = 'Statement of the gateway'
  const gateway = session.value?.gateway.did
  if (agent.proof === null)
    return {
      title,
      holds: 'none',
      text: html`The gateway has no identity, so it signs no entries. Create one with <code>npx parley did new --gateway</code>.`,
    }
  const claims = claimsOf(agent.proof)
  const agrees = claims !== undefined && claims['sub'] === agent.did && sameTexts(claims['keys'], agent.keys)
  if (!agrees)
    return {
      title,
      holds: 'no',
      text: 'The signed statement names another DID or other keys than this entry. Reload the page; if it remains, verify the card.',
    }
  return {
    title,
    holds: 'yes',
    text: `The gateway has signed the DID, the keys, the address and the hash of the card${claims['verified'] === true ? ', and that the key is proven' : ''}.`,
    detail: html`${gateway && html`<${Id} value=${gateway} length=${24} copies=${true} label="DID of the gateway" />`}<${Id} value=${agent.proof} length=${20} copies=${true} label="statement" />`,
  }
}

/**
 * @param {unknown} texts
 * @param {readonly string[]} others
 */
const sameTexts = (texts, others) =>
  Array.isArray(texts) && texts.length === others.length && others.every((text) => texts.includes(text))

/**
 * @param {string} jws
 * @returns {Record<string, unknown> | undefined}
 */
function claimsOf(jws) {
  try {
    const json = atob((jws.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/'))
    const claims = JSON.parse(json)
    return typeof claims === 'object' && claims !== null ? claims : undefined
  } catch {
    return undefined
  }
}
