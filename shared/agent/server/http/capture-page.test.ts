import { encoded, price, TestFacilitator, TestWallet } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

const wallet = new TestWallet()
const paidAgent = (more: Parameters<typeof testAgent>[0] = { handle: () => 'done' }, env = {}) =>
  testAgent({ executionCost: price, ...more }, { env })

interface Session {
  session_id: string
  status: string
  capture_url: string
  payer?: string
}

async function start(agent: TestAgent): Promise<Session> {
  const headers = { authorization: `Bearer ${agent.caller('alice').token}` }
  const answer = await fetch(`${agent.url}/api/start-payment-session`, { method: 'POST', headers })
  return (await answer.json()) as Session
}

async function statusOf(agent: TestAgent, { session_id: id }: Session): Promise<Session> {
  const headers = { authorization: `Bearer ${agent.caller('alice').token}` }
  return (await (await fetch(`${agent.url}/api/payment-status/${id}`, { headers })).json()) as Session
}

const read = async (url: string) => {
  const answer = await fetch(url)
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

/** Submits the form and follows the redirect, like a browser without scripts. */
async function submit({ capture_url: url }: Session, fields: Record<string, string>) {
  const body = new URLSearchParams(fields)
  const answer = await fetch(`${url}/form`, { method: 'POST', body, redirect: 'manual' })
  const location = answer.headers.get('location') ?? ''
  return {
    status: answer.status,
    to: location.replace(/^\.\.\/[\w-]+/, ''),
    page: await read(new URL(location, `${url}/form`).href),
  }
}

test('capture_url is a page with the amount, the payee, the network, the expiry and a test money notice', async () => {
  await using agent = await paidAgent({ name: 'chart maker', description: 'Draws charts', handle: () => '' })
  const { status, headers, text } = await read((await start(agent)).capture_url)
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(headers.get('cache-control')).toBe('no-store')
  for (const said of [
    '0.01',
    'USDC',
    'chart maker',
    'Draws charts',
    price.payTo,
    'Base Sepolia',
    price.asset,
  ])
    expect(text).toContain(said)
  expect(text).toContain('15 minutes left')
  expect(text).toContain('Test money.')
})

test('the content security policy allows only the inline script of the page and no framing', async () => {
  await using agent = await paidAgent()
  const { headers, text } = await read((await start(agent)).capture_url)
  const policy = headers.get('content-security-policy') ?? ''
  expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[\w+/=]+'; style-src 'sha256-[\w+/=]+';/)
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toMatch(/unsafe|\*|https?:/)
  expect(text).not.toMatch(/ on\w+=|style="|javascript:/)
})

test('markup in any text on the page is escaped', async () => {
  const markup = `"'><img src=x onerror=alert(1)><script>alert(2)</script>&\u202e`
  await using agent = await paidAgent({
    name: markup.slice(0, 60),
    description: `of ${markup}`,
    executionCost: { ...price, extra: { name: `token ${markup}`, version: '2' } },
    handle: () => '',
  })
  const { text } = await read((await start(agent)).capture_url)
  expect(text).not.toMatch(/<img|<script>alert|\u202e/)
  expect(text.match(/<script>/g)).toHaveLength(1)
  expect(text).toContain('&lt;script&gt;alert(2)&lt;/script&gt;&amp;')
})

test('in the sandbox, the test wallet pays without a script, and the page then names the payer and the transaction', async () => {
  await using agent = await paidAgent()
  const session = await start(agent)
  const { status, to, page } = await submit(session, { with: 'test-wallet' })
  expect([status, to]).toEqual([303, ''])
  const now = await statusOf(agent, session)
  expect(now).toMatchObject({ status: 'completed', tx_hash: expect.stringMatching(/^0x/) })
  expect(page.text).toContain('data-state="completed"')
  expect(page.text).toContain(now.payer)
  expect(page.text).not.toContain('<form')
})

test.each(['JSON', 'base64'])('a pasted payment in %s pays', async (form) => {
  await using agent = await paidAgent()
  const session = await start(agent)
  const payment = await wallet.pay()
  const pasted = form === 'JSON' ? JSON.stringify(payment, null, 2) : ` ${encoded(payment)}\n`
  expect((await submit(session, { with: 'payload', payment: pasted })).to).toBe('')
  expect(await statusOf(agent, session)).toMatchObject({ status: 'completed', payer: wallet.account.address })
})

test.each([
  ['nothing', '', 'payment_required', 'contains no payment'],
  ['no JSON', '{nothing', 'invalid_payload', 'not an x402 payment'],
  ['no payment', '{}', 'invalid_x402_version', 'version is not supported'],
  ['a list', encoded([1]), 'invalid_x402_version', 'version is not supported'],
])(
  'a pasted text that is %s is refused on the page, and the session can still be paid',
  async (_, payment, code, said) => {
    await using agent = await paidAgent()
    const session = await start(agent)
    const { to, page } = await submit(session, { with: 'payload', payment })
    expect(to).toBe(`?refused=${code}`)
    expect(page.text).toMatch(/<div class="refused" role="alert"/)
    expect(page.text).toContain(said)
    expect((await submit(session, { with: 'test-wallet' })).to).toBe('')
  },
)

test('a session may name the address to which its payer returns', async () => {
  await using agent = await paidAgent()
  const headers = {
    authorization: `Bearer ${agent.caller('alice').token}`,
    'content-type': 'application/json',
  }
  const startWith = (returnUrl: string) =>
    fetch(`${agent.url}/api/start-payment-session`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ return_url: returnUrl }),
    })
  const started = (await (await startWith('https://shop.example/orders/7')).json()) as Session
  expect((await read(started.capture_url)).text).toContain('href="https://shop.example/orders/7"')
  const unsafe = [
    'javascript:alert(1)',
    'data:text/html,x',
    '/orders/7',
    'https://shop.example@evil.example/',
    'https://a:b@shop.example/',
    'https://shop.example/\u202e',
    `https://shop.example/${'x'.repeat(2048)}`,
  ]
  for (const url of unsafe) expect((await startWith(url)).status).toBe(400)
})

test('the page ignores an unknown refusal code in its URL, so that the URL cannot inject text', async () => {
  await using agent = await paidAgent()
  const { capture_url: url } = await start(agent)
  const strange = await read(`${url}?refused=call_0800_and_pay`)
  expect(strange.text).toContain('The payment was refused.')
  expect(strange.text).not.toContain('0800')
  for (const odd of ['refused=%3Cb%3E', 'refused=a&refused=b', 'refused=', 'refused=__proto__'])
    expect((await read(`${url}?${odd}`)).status).toBe(200)
})

test('outside the sandbox, the page offers no test wallet and its form accepts none', async () => {
  await using facilitator = await TestFacilitator.start()
  await using agent = await paidAgent(undefined, { PAYMENT_FACILITATOR_URL: facilitator.url })
  const session = await start(agent)
  expect((await read(session.capture_url)).text).not.toMatch(/test.wallet|Test money/i)
  expect((await submit(session, { with: 'test-wallet' })).to).toBe('?refused=payment_required')
  expect(facilitator.settleCalls).toEqual([])
})

test('the page shows a failed or pending payment as such and accepts no other payment', async () => {
  await using facilitator = await TestFacilitator.start()
  facilitator.settle = () => ({
    json: { success: false, errorReason: 'invalid_exact_evm_insufficient_balance' },
  })
  await using agent = await paidAgent(undefined, { PAYMENT_FACILITATOR_URL: facilitator.url })
  const failing = await start(agent)
  const { page } = await submit(failing, { payment: encoded(await wallet.pay()) })
  expect(page.text).toContain('data-state="failed"')
  expect(page.text).toContain('does not hold enough')
  facilitator.settle = () => ({ status: 500 })
  const waiting = await start(agent)
  const sent = await submit(waiting, { payment: encoded(await wallet.pay()) })
  expect(sent.page.text).toContain('Do not pay again')
  for (const { text } of [page, sent.page]) expect(text).not.toContain('<form')
})

test('an unknown session receives 404 with a page', async () => {
  await using agent = await paidAgent()
  for (const token of ['x'.repeat(32), 'x', '%3Cb%3E', encodeURIComponent("'--")]) {
    const { status, text } = await read(`${agent.url}/pay/${token}`)
    expect([status, text.includes('No such payment')]).toEqual([404, true])
  }
  const posted = await fetch(`${agent.url}/pay/none/form`, { method: 'POST', body: new URLSearchParams() })
  expect(posted.status).toBe(404)
})

test('an agent without prices has no such page', async () => {
  await using agent = await testAgent({ handle: () => 'free' })
  const { status } = await fetch(`${agent.url}/pay/x/form`, { method: 'POST', body: new URLSearchParams() })
  expect(status).toBe(404)
})

test('a form larger than any payment receives 413', async () => {
  await using agent = await paidAgent()
  const { capture_url: url } = await start(agent)
  const body = new URLSearchParams({ payment: 'x'.repeat(70_000) })
  expect((await fetch(`${url}/form`, { method: 'POST', body })).status).toBe(413)
})
