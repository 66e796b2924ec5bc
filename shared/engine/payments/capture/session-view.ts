import type { PaymentRecord, PaymentTerms } from '../../store/payment-store.ts'
import { chainIdOf } from '../facilitators/typed-data.ts'
import { statusOf } from '../ledger/sessions.ts'
import { requirementsOf } from '../x402/x402.ts'
import type { CaptureContent } from './capture-page.ts'
import { type Html, html } from './html.ts'
import { explorerUrl, networkName } from './networks.ts'
import { qrCode } from './qr-code.ts'
import { refusalText } from './refusal-text.ts'

export interface SessionView {
  session: PaymentRecord
  /** The last segment of the page's URL. Forms post to a path below it. */
  token: string
  agent: { name: string; description: string; skills: readonly { id: string; name: string }[] }
  /** The address of the page. */
  captureUrl: string
  /** The terms of a direct transfer, with the exact amount, if the session offers one. */
  transfer?: PaymentTerms | undefined
  /** The current time in milliseconds since 1970. */
  now: number
  /** The code that explains why the last attempt was refused. */
  refused?: string | undefined
}

type Stage = 'open' | 'on its way' | 'completed' | 'failed' | 'expired'

/** Renders the content of a session's page. */
export function sessionView(view: SessionView): CaptureContent {
  const stage = stageOf(view.session)
  const { terms } = view.session
  const heading = headings[stage]
  const title = `${view.refused === undefined ? '' : 'Refused – '}${heading}: ${terms.amount} ${terms.extra.name}`
  const main = html`<main${stage !== 'completed' && dataOf(view, stage)}>
${view.refused !== undefined && refusal(view.refused)}
${view.session.sandbox && testMoney}
<header><p class="seller"><bdi>${view.agent.name}</bdi></p><p class="state" data-state="${stage}">${states[stage]}</p></header>
<h1>${heading}</h1>
<p class="amount">${terms.amount} <span><bdi>${terms.extra.name}</bdi>${view.session.sandbox && ' (test money)'}</span></p>
<p class="from">to <bdi>${view.agent.name}</bdi>, on ${networkName(terms.network) ?? terms.network}</p>
${contents[stage](view)}
</main>`
  const footer =
    view.transfer === undefined
      ? undefined
      : 'A signed payment (x402) transfers exactly the price, once. A direct transfer must have exactly the amount that is shown for it.'
  return { title, main, footer, ...(stage === 'on its way' && { refreshSeconds: 5 }) }
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
${purchase(view)}
<div id="news" role="status"></div>
${view.session.sandbox && testWallet(view)}
${browserWallets(view)}
${otherWays(view)}
${returnLink(view, 'Cancel and return to')}
${facts(view)}`,
  'on its way': (
    view,
  ) => html`<p>It was sent to the network and is not confirmed yet. <strong>Do not pay again</strong>: this page
updates automatically.</p>
<div id="news" role="status"></div>
${purchase(view)}
${facts(view)}`,
  completed: (
    view,
  ) => html`<p>Thank you. You can close this page and return to the program that requested the payment.</p>
${returnLink(view, 'Return to')}
${receipt(view)}
${facts(view)}`,
  failed: (
    view,
  ) => html`<p>${refusalText(view.session.reason ?? '')} ${takenMoney(view)} To try again, request a new
payment in the program that requested this one.</p>
${returnLink(view, 'Return to')}
${purchase(view)}
${facts(view)}`,
  expired: (
    view,
  ) => html`<p>${takenMoney(view)} To pay, request a new payment in the program that requested this
one.</p>
${returnLink(view, 'Return to')}
${purchase(view)}
${facts(view)}`,
}

/** Says what happened to the money. A direct transfer may be late, or not visible yet. */
function takenMoney({ transfer, session }: SessionView): string {
  const isFailed = session.state === 'failed'
  if (transfer === undefined) return `No money was taken${isFailed ? ' from your wallet' : ''}.`
  const sent = `If you sent ${transfer.amount} ${transfer.extra.name} directly, do not send it again:`
  return isFailed
    ? `The signed payment took no money. ${sent} this payment can no longer be made, and the transfer is listed for a refund.`
    : `${sent} a transfer in time still appears here, and a late one is listed for a refund.`
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
  return html`<time datetime="${iso}" data-clock>${iso.slice(11, 16)} UTC</time>`
}

const row = (term: string, description: Html) => html`<div><dt>${term}</dt><dd>${description}</dd></div>
`
const code = (text: string) => html`<code>${text}</code>`

/** What the payer buys: a skill of the agent, or the agent's work. */
function purchase({ session, agent }: SessionView): Html {
  const skill = agent.skills.find(({ id }) => id === session.skillId)
  return html`<dl>
${skill !== undefined && row('Service', html`<bdi>${skill.name}</bdi>`)}
${row('For', html`<bdi>${agent.description.slice(0, 500)}</bdi>`)}
</dl>`
}

/** What a payer keeps. The button works only with scripts, which show it. */
function receipt({ session, agent }: SessionView): Html {
  const { terms, payer, txHash, completedAt, sandbox } = session
  const skill = agent.skills.find(({ id }) => id === session.skillId)
  const explorer = txHash === undefined ? undefined : explorerUrl({ network: terms.network, sandbox }, txHash)
  const link =
    explorer !== undefined &&
    html` <a href="${explorer}" rel="noreferrer">View at ${URL.parse(explorer)?.host}</a>`
  return html`<section aria-labelledby="receipt"><h2 id="receipt">Receipt</h2>
<dl>
${row('Seller', html`<bdi>${agent.name}</bdi>`)}
${row('For', html`<bdi>${skill?.name ?? agent.description.slice(0, 500)}</bdi>`)}
${row('Amount', html`${terms.amount} <bdi>${terms.extra.name}</bdi>${sandbox && ' (test money)'}`)}
${completedAt !== undefined && row('Paid at', html`<time datetime="${completedAt}">${completedAt.slice(0, 19).replace('T', ' ')} UTC</time>`)}
${txHash !== undefined && payer !== undefined && row('Payer', code(payer))}
${txHash !== undefined && row('Transaction', html`${code(txHash)}${link}`)}
</dl>
<button type="button" class="second" id="print" hidden>Print the receipt</button></section>`
}

function facts({ session }: SessionView): Html {
  const { terms } = session
  const name = networkName(terms.network)
  return html`<details class="facts"><summary>Technical details</summary><dl>
${row('Receiver', code(terms.payTo))}
${row('Network', name === undefined ? code(terms.network) : html`${name} ${code(terms.network)}`)}
${row('Asset', html`<bdi>${terms.extra.name}</bdi> ${code(terms.asset)}`)}
${row('Session', code(session.id))}
</dl></details>`
}

/** The address was checked when the session was created. Its host is part of the text, because the caller chose it. */
function returnLink({ session }: SessionView, text: string): Html | undefined {
  const url = session.returnUrl === undefined ? null : URL.parse(session.returnUrl)
  if (url === null || !/^https?:$/.test(url.protocol)) return undefined
  return html`<p><a class="return" href="${url.href}" rel="noreferrer">${text} <bdi>${url.host}</bdi></a></p>`
}

function otherWays(view: SessionView): Html {
  const program = byPayload(view)
  return view.transfer === undefined
    ? html`${program}
${onPhone(view)}`
    : html`${directTransfer(view.transfer)}
${program}`
}

/**
 * The code contains the address of this page. A transfer of the price would carry nothing that names this session, so that
 * it would not count as its payment.
 */
function onPhone({ captureUrl }: SessionView): Html | undefined {
  const svg = qrCode(captureUrl, 'QR code with the address of this page')
  return (
    svg &&
    html`<details class="phone"><summary>Pay with a wallet on your phone</summary>
<p>Scan this code with the camera of your phone, or in the browser of your wallet app. It opens this page there.</p>
${svg}</details>`
  )
}

/** A request for a transfer of the exact amount (EIP-681). The amount identifies the session. */
function directTransfer({ network, asset, payTo, amount, atomic, extra }: PaymentTerms): Html {
  const uri = `ethereum:${asset}@${chainIdOf(network)}/transfer?address=${payTo}&uint256=${atomic}`
  return html`<section aria-labelledby="direct"><h2 id="direct">Direct transfer</h2>
<p>From a wallet app, send exactly <strong>${amount} <bdi>${extra.name}</bdi></strong> on ${networkName(network) ?? network}, once and
while this page is open. Only this amount is recognized as this payment: it appears here after a few confirmations, and a
transfer that is late or has another amount does not pay. Use your own wallet, because refunds go to the address that sent the
money.</p>
<details class="phone"><summary>Show the code for a wallet on your phone</summary>
<p>Scan this code with your wallet app, or <a href="${uri}">open it in a wallet</a> on this device. Check that the app shows exactly
the amount above.</p>
${qrCode(uri, 'QR code with the transfer for your wallet')}</details></section>`
}

function testWallet({ token }: SessionView): Html {
  return html`<section aria-labelledby="test-wallet"><h2 id="test-wallet">Test wallet</h2>
<p>A wallet with test money for this payment only. It signs a transfer like a real wallet.</p>
<form method="post" action="${token}/form"><button name="with" value="test-wallet">Pay with the test wallet</button></form></section>`
}

function browserWallets({ session, transfer }: SessionView): Html {
  return html`<section aria-labelledby="browser-wallet"><h2 id="browser-wallet">Browser wallet</h2>
<noscript><p>Browser wallets require JavaScript, which is disabled. You can still pay with another program.</p></noscript>
<p id="no-wallet">No wallet was found in this browser.</p>
<div id="wallets"></div>
${!session.sandbox && transfer === undefined && html`<p>Do not send money to the receiver directly: only a payment on this page counts.</p>`}</section>`
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
