import type { PaymentRecord } from '../../store/payment-store.ts'
import { chainIdOf } from '../facilitators/typed-data.ts'
import { statusOf } from '../ledger/sessions.ts'
import { requirementsOf } from '../x402/x402.ts'
import { type Html, html } from './html.ts'
import { refusalText } from './refusal-text.ts'

export interface SessionView {
  session: PaymentRecord
  /** The last segment of the page's URL. Forms post to a path below it. */
  token: string
  agent: { name: string; description: string }
  /** The current time in milliseconds since 1970. */
  now: number
  /** The code that explains why the last attempt was refused. */
  refused?: string | undefined
}

type Stage = 'open' | 'on its way' | 'completed' | 'failed' | 'expired'

/** Renders the title and the content of a session's page. */
export function sessionView(view: SessionView): { title: string; main: Html; refreshSeconds?: number } {
  const stage = stageOf(view.session)
  const { terms } = view.session
  const heading = headings[stage]
  const title = `${view.refused === undefined ? '' : 'Refused – '}${heading}: ${terms.amount} ${terms.extra.name}`
  const main = html`<main${stage !== 'completed' && dataOf(view, stage)}>
${view.refused !== undefined && refusal(view.refused)}
${view.session.sandbox && testMoney}
<p class="state" data-state="${stage}">${states[stage]}</p>
<h1>${heading}</h1>
<p class="from">to <bdi>${view.agent.name}</bdi>, on ${networkName(terms.network) ?? terms.network}</p>
<p class="amount">${terms.amount} <span><bdi>${terms.extra.name}</bdi>${view.session.sandbox && ' (test money)'}</span></p>
${contents[stage](view)}
</main>`
  return { title, main, ...(stage === 'on its way' && { refreshSeconds: 5 }) }
}

/** The page for an unknown session. */
export const unknownSession = {
  title: 'No such payment',
  main: html`<main><h1>No such payment</h1>
<p>There is no payment at this address. The address may be incomplete, or the payment was removed.</p></main>`,
}

const headings: Record<Stage, string> = {
  open: 'Pay',
  'on its way': 'Your payment is being settled',
  completed: 'Paid',
  failed: 'The payment failed',
  expired: 'The payment session has expired',
}

const states: Record<Stage, string> = {
  open: 'Waiting for payment',
  'on its way': 'Settling',
  completed: 'Completed',
  failed: 'Failed',
  expired: 'Expired',
}

const contents: Record<Stage, (view: SessionView) => Html> = {
  open: (view) => html`${timeLeft(view)}
<div id="news" role="status"></div>
${view.session.sandbox && testWallet(view)}
${browserWallets(view)}
${byPayload(view)}
${facts(view)}`,
  'on its way': (
    view,
  ) => html`<p>It was sent to the network and is not confirmed yet. <strong>Do not pay again</strong>: this page
updates automatically.</p>
<div id="news" role="status"></div>
${facts(view)}`,
  completed: (
    view,
  ) => html`<p>Thank you. You can close this page and return to the program that requested the payment.</p>
${facts(view)}`,
  failed: (
    view,
  ) => html`<p>${refusalText(view.session.reason ?? '')} No money was taken from your wallet. To try again, request a new
payment in the program that requested this one.</p>
${facts(view)}`,
  expired: (
    view,
  ) => html`<p>No money was taken. To pay, request a new payment in the program that requested this
one.</p>
${facts(view)}`,
}

function stageOf(session: PaymentRecord): Stage {
  const status = statusOf(session)
  return status !== 'pending' ? status : session.state === 'open' ? 'open' : 'on its way'
}

const testMoney = html`<p class="test-money"><strong>Test money.</strong> This is a sandbox: payments here have no value.</p>`

function refusal(code: string): Html {
  return html`<div class="refused" role="alert" tabindex="-1" autofocus><p><strong>Not paid.</strong> ${refusalText(code)}</p></div>`
}

/** Returns the data for the page's script. */
function dataOf({ session, now }: SessionView, stage: Stage): Html | undefined {
  if (stage !== 'open' && stage !== 'on its way') return undefined
  const { terms, expiresAt } = session
  const open = stage === 'open'
  const data = { open, now, expiresAt, chainId: chainIdOf(terms.network), accepted: requirementsOf(terms) }
  return html` data-payment="${JSON.stringify(data)}"`
}

function timeLeft({ session, now }: SessionView): Html {
  const until = session.expiresAt ?? 0
  const minutes = Math.max(1, Math.ceil((until - now) / 60_000))
  return html`<p class="left"><span role="timer" id="left">${minutes} ${minutes === 1 ? 'minute' : 'minutes'} left</span>, until
${clock(until)}</p>`
}

/** Omits the seconds, because the countdown shows them. */
function clock(ms: number): Html {
  const iso = new Date(ms).toISOString()
  return html`<time datetime="${iso}">${iso.slice(11, 16)} UTC</time>`
}

function facts({ session, agent }: SessionView): Html {
  const { terms, payer, txHash, completedAt } = session
  const name = networkName(terms.network)
  const row = (term: string, description: Html) => html`<div><dt>${term}</dt><dd>${description}</dd></div>
`
  const code = (text: string) => html`<code>${text}</code>`
  return html`<dl>
${row('For', html`<bdi>${agent.description.slice(0, 500)}</bdi>`)}
${row('Receiver', code(terms.payTo))}
${row('Network', name === undefined ? code(terms.network) : html`${name} ${code(terms.network)}`)}
${row('Asset', html`<bdi>${terms.extra.name}</bdi> ${code(terms.asset)}`)}
${txHash !== undefined && payer !== undefined && row('Payer', code(payer))}
${txHash !== undefined && row('Transaction', code(txHash))}
${completedAt !== undefined && row('Paid at', html`<time datetime="${completedAt}">${completedAt.slice(0, 19).replace('T', ' ')} UTC</time>`)}
${row('Session', code(session.id))}
</dl>`
}

function testWallet({ token }: SessionView): Html {
  return html`<section aria-labelledby="test-wallet"><h2 id="test-wallet">Test wallet</h2>
<p>A wallet with test money for this payment only. It signs a transfer like a real wallet.</p>
<form method="post" action="${token}/form"><button name="with" value="test-wallet">Pay with the test wallet</button></form></section>`
}

function browserWallets({ session }: SessionView): Html {
  return html`<section aria-labelledby="browser-wallet"><h2 id="browser-wallet">Browser wallet</h2>
<noscript><p>Browser wallets require JavaScript, which is disabled. You can still pay with another program.</p></noscript>
<p id="no-wallet">No wallet was found in this browser.</p>
<div id="wallets"></div>
${!session.sandbox && html`<p>Do not send money to the receiver directly: only a payment on this page counts.</p>`}</section>`
}

function byPayload({ session, token }: SessionView): Html {
  const requirements = JSON.stringify({ x402Version: 2, accepts: [requirementsOf(session.terms)] }, null, 2)
  return html`<details><summary>Pay with another program</summary>
<p>Any x402 client can sign this payment. It needs this data:</p>
<pre tabindex="0" aria-label="Payment requirements">${requirements}</pre>
<form method="post" action="${token}/form" id="by-payload"><label for="payment">Signed payment (JSON, or base64 of it)</label>
<textarea id="payment" name="payment" rows="6" maxlength="24000" spellcheck="false" autocomplete="off" required></textarea>
<button class="second" name="with" value="payload">Pay with this payment</button></form></details>`
}

/** Common names of the networks on which USDC and similar tokens exist. */
const names: Record<string, string> = {
  'eip155:1': 'Ethereum',
  'eip155:10': 'Optimism',
  'eip155:137': 'Polygon',
  'eip155:1328': 'Sei testnet',
  'eip155:1329': 'Sei',
  'eip155:3338': 'peaq',
  'eip155:4689': 'IoTeX',
  'eip155:8453': 'Base',
  'eip155:31337': 'Local test network',
  'eip155:42161': 'Arbitrum One',
  'eip155:43113': 'Avalanche Fuji (test network)',
  'eip155:43114': 'Avalanche',
  'eip155:80002': 'Polygon Amoy (test network)',
  'eip155:84532': 'Base Sepolia (test network)',
  'eip155:421614': 'Arbitrum Sepolia (test network)',
  'eip155:11155111': 'Ethereum Sepolia (test network)',
  'eip155:11155420': 'Optimism Sepolia (test network)',
}

/** Returns undefined if the network has no common name. */
function networkName(network: string): string | undefined {
  return Object.hasOwn(names, network) ? names[network] : undefined
}
