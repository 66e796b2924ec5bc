// Runs in the payer's browser, as it is; everything that it does has a way without it, but for wallets of the browser.
const page = document.querySelector('main')
const news = document.getElementById('news')
const asked = page.dataset.payment === undefined ? undefined : JSON.parse(page.dataset.payment)
/** The payer's clock may be wrong: times are the server's. */
const ahead = asked === undefined ? 0 : asked.now - Date.now()
const serverNow = () => Date.now() + ahead
let busy = false

const show = () => location.replace(location.pathname)

/** Told to all, screen readers too. */
function tell(text, bad = false) {
  news.toggleAttribute('data-bad', bad)
  news.textContent = text
}

function countDown() {
  const left = Math.max(0, Math.floor((asked.expiresAt - serverNow()) / 1000))
  const seconds = String(left % 60).padStart(2, '0')
  document.getElementById('left').textContent = `${Math.floor(left / 60)}:${seconds} left`
  if (left === 60) tell('One minute left to pay.')
  if (left === 0 && !busy) show()
  else setTimeout(countDown, 1000)
}

/** Somebody may pay elsewhere, and what is on its way arrives. */
async function follow(wait) {
  await new Promise((resolve) => setTimeout(resolve, wait))
  if (busy || document.hidden) return follow(wait)
  try {
    const answer = await fetch(`${location.pathname}/session`, { cache: 'no-store' })
    if (answer.ok && (await answer.json()).session.status !== 'pending') return show()
  } catch {
    return follow(Math.min(wait * 2, 30_000))
  }
  return follow(wait)
}

/** What keeps a person from pressing a button twice, without taking the focus away from it. */
function occupy(on) {
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
  occupy(true)
  try {
    tell('Your wallet asks which account pays.')
    const [from] = await provider.request({ method: 'eth_requestAccounts' })
    await toNetwork(provider)
    tell('Your wallet asks for your signature. Nothing moves without it.')
    const authorization = authorizationOf(from)
    const signature = await provider.request({
      method: 'eth_signTypedData_v4',
      params: [from, JSON.stringify(typedData(authorization))],
    })
    tell('Paying …')
    const payment = { x402Version: 2, accepted: asked.accepted, payload: { signature, authorization } }
    const form = document.getElementById('by-payload')
    form.elements.payment.value = JSON.stringify(payment)
    form.submit()
  } catch (error) {
    occupy(false)
    tell(refusalOf(error), true)
  }
}

async function toNetwork(provider) {
  const chainId = `0x${asked.chainId.toString(16)}`
  const present = await provider.request({ method: 'eth_chainId' })
  if (BigInt(present) === BigInt(chainId)) return
  tell('Your wallet asks to change the network.')
  await provider.request({ method: 'wallet_switchEthereumChain', params: [{ chainId }] })
}

function authorizationOf(from) {
  const now = Math.floor(serverNow() / 1000)
  const random = crypto.getRandomValues(new Uint8Array(32))
  const nonce = `0x${[...random].map((byte) => byte.toString(16).padStart(2, '0')).join('')}`
  const { payTo: to, amount: value, maxTimeoutSeconds } = asked.accepted
  return { from, to, value, validAfter: '0', validBefore: String(now + maxTimeoutSeconds), nonce }
}

/** EIP-3009, as the token's contract will read it. */
function typedData(authorization) {
  const field = (name, type) => ({ name, type })
  const { asset: verifyingContract, extra } = asked.accepted
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
    domain: { name: extra.name, version: extra.version, chainId: asked.chainId, verifyingContract },
    primaryType: 'TransferWithAuthorization',
    message: authorization,
  }
}

function refusalOf(error) {
  if (error?.code === 4001) return 'You declined in your wallet. Nothing was paid.'
  if (error?.code === 4902) return 'Your wallet does not know this network. Add it there, then try again.'
  return 'Your wallet did not sign. Nothing was paid.'
}

function start() {
  // A page that the browser kept while another was shown may be long out of date.
  addEventListener('pageshow', ({ persisted }) => {
    if (persisted) show()
  })
  if (asked === undefined) return
  void follow(3000)
  if (!asked.open) return
  countDown()
  const seen = new Set()
  const found = ({ detail }) => {
    if (seen.has(detail?.info?.uuid) || seen.size >= 10) return
    seen.add(detail.info.uuid)
    offer(String(detail.info.name), detail.provider)
  }
  // Wallets tell their names (EIP-6963); older ones are only there (EIP-1193).
  addEventListener('eip6963:announceProvider', found)
  dispatchEvent(new Event('eip6963:requestProvider'))
  setTimeout(() => {
    if (seen.size === 0 && window.ethereum !== undefined) offer('the wallet of this browser', window.ethereum)
  }, 300)
  for (const form of document.querySelectorAll('form')) {
    form.addEventListener('submit', (event) => {
      if (busy) return event.preventDefault()
      occupy(true)
      tell('Paying …')
    })
  }
}

start()
