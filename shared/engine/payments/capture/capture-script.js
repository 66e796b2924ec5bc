// Runs in the payer's browser without a build step. Everything except browser wallets also works without it.
const page = document.querySelector('main')
const news = document.getElementById('news')
const request = page.dataset.payment === undefined ? undefined : JSON.parse(page.dataset.payment)
/** The offset of the server's clock, because the payer's clock may be wrong. */
const clockOffset = request === undefined ? 0 : request.now - Date.now()
const serverNow = () => Date.now() + clockOffset
let busy = false

const reload = () => location.replace(location.pathname)

/** Shows a status text, and announces it to screen readers. */
function showStatus(text, bad = false) {
  news.toggleAttribute('data-bad', bad)
  news.textContent = text
}

function countDown() {
  const left = Math.max(0, Math.floor((request.expiresAt - serverNow()) / 1000))
  const seconds = String(left % 60).padStart(2, '0')
  document.getElementById('left').textContent = `${Math.floor(left / 60)}:${seconds} left`
  if (left === 60) showStatus('One minute left to pay.')
  if (left === 0 && !busy) reload()
  else setTimeout(countDown, 1000)
}

/** Polls the session: it may be paid elsewhere, and a pending settlement completes. */
async function follow(wait) {
  await new Promise((resolve) => setTimeout(resolve, wait))
  if (busy || document.hidden) return follow(wait)
  try {
    const answer = await fetch(`${location.pathname}/session`, { cache: 'no-store' })
    if (answer.ok && (await answer.json()).session.status !== 'pending') return reload()
  } catch {
    return follow(Math.min(wait * 2, 30_000))
  }
  return follow(wait)
}

/** Prevents a second click while keeping the focus on the button. */
function setBusy(on) {
  busy = on
  for (const button of document.querySelectorAll('button')) button.setAttribute('aria-disabled', String(on))
}

function offer(name, provider) {
  const button = document.createElement('button')
  button.type = 'button'
  button.textContent = `Pay with ${name.slice(0, 60)}`
  button.addEventListener('click', () => {
    if (!busy) void payBy(provider)
  })
  document.getElementById('wallets').append(button)
  document.getElementById('no-wallet').hidden = true
}

async function payBy(provider) {
  setBusy(true)
  try {
    showStatus('Select an account in your wallet.')
    const [from] = await provider.request({ method: 'eth_requestAccounts' })
    await toNetwork(provider)
    showStatus('Sign the payment in your wallet. No money moves before that.')
    const authorization = authorizationOf(from)
    const signature = await provider.request({
      method: 'eth_signTypedData_v4',
      params: [from, JSON.stringify(typedData(authorization))],
    })
    showStatus('Paying …')
    const payment = { x402Version: 2, accepted: request.accepted, payload: { signature, authorization } }
    const form = document.getElementById('by-payload')
    form.elements.payment.value = JSON.stringify(payment)
    form.submit()
  } catch (error) {
    setBusy(false)
    showStatus(refusalOf(error), true)
  }
}

async function toNetwork(provider) {
  const chainId = `0x${request.chainId.toString(16)}`
  const present = await provider.request({ method: 'eth_chainId' })
  if (BigInt(present) === BigInt(chainId)) return
  showStatus('Confirm the change of network in your wallet.')
  await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] })
}

function authorizationOf(from) {
  const now = Math.floor(serverNow() / 1000)
  const random = crypto.getRandomValues(new Uint8Array(32))
  const nonce = `0x${[...random].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
  const { payTo: to, amount: value, maxTimeoutSeconds } = request.accepted
  return { from, to, value, validAfter: '0', validBefore: String(now + maxTimeoutSeconds), nonce }
}

/** The typed data of EIP-3009 that the token's contract verifies. */
function typedData(authorization) {
  const field = (name, type) => ({ name, type })
  const { asset: verifyingContract, extra } = request.accepted
  return {
    types: {
      EIP712Domain: [
        field('name', 'string'),
        field('version', 'string'),
        field('chainId', 'uint256'),
        field('verifyingContract', 'address'),
      ],
      TransferWithAuthorization: [
        field('from', 'address'),
        field('to', 'address'),
        field('value', 'uint256'),
        field('validAfter', 'uint256'),
        field('validBefore', 'uint256'),
        field('nonce', 'bytes32'),
      ],
    },
    domain: { name: extra.name, version: extra.version, chainId: request.chainId, verifyingContract },
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  }
}

function refusalOf(error) {
  if (error?.code === 4001) return 'The payment was declined in your wallet. No money was taken.'
  if (error?.code === 4902) return 'Your wallet does not know this network. Add it there, then try again.'
  return 'Your wallet did not sign the payment. No money was taken.'
}

/** Shows times in the payer's time zone. The time in UTC stays readable as a title. */
function showLocalTimes() {
  for (const element of document.querySelectorAll('time[datetime]')) {
    const at = new Date(element.dateTime)
    if (Number.isNaN(at.getTime())) continue
    const isClock = element.dataset.clock !== undefined
    const parts = isClock ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'medium' }
    element.title = element.textContent
    element.textContent = new Intl.DateTimeFormat(undefined, parts).format(at)
  }
}

function offerPrint() {
  const button = document.getElementById('print')
  if (button === null) return
  button.hidden = false
  button.addEventListener('click', () => print())
}

function start() {
  showLocalTimes()
  offerPrint()
  // A page from the back/forward cache may be outdated.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) reload()
  })
  if (request === undefined) return
  void follow(3000)
  if (!request.open) return
  countDown()
  const seen = new Set()
  const found = ({ detail }) => {
    if (seen.has(detail?.info?.uuid) || seen.size >= 10) return
    seen.add(detail.info.uuid)
    offer(String(detail.info.name), detail.provider)
  }
  // Wallets announce themselves (EIP-6963); older ones only set `window.ethereum` (EIP-1193).
  addEventListener('eip6963:announceProvider', found)
  dispatchEvent(new Event('eip6963:requestProvider'))
  setTimeout(() => {
    if (seen.size === 0 && window.ethereum !== undefined) offer('the browser wallet', window.ethereum)
  }, 300)
  for (const form of document.querySelectorAll('form')) {
    form.addEventListener('submit', (event) => {
      if (busy) return event.preventDefault()
      setBusy(true)
      showStatus('Paying …')
    })
  }
}

start()
