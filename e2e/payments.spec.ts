import { type TestAgent, type TestDefinition, testAgent } from '@parley/agent/testing'
import { onPath } from '@parley/tools/install-programs'
import { price } from '@parley/tools/testing/paid-agent'
import { type Browser, chromium, expect, type Page } from '@playwright/test'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { skipWithoutServers, test } from './backends.ts'
import type { Backends } from './harness/deployment.ts'

interface Session {
  session_id: string
  status: string
  capture_url: string
  payer?: string
  [key: string]: unknown
}

const payer = privateKeyToAccount(generatePrivateKey())
let browser: Browser
skipWithoutServers()
let agent: TestAgent

test.describe('the page of a payment session (needs chromium)', () => {
  test.skip(!onPath('chromium'), 'chromium is not installed')

  test.beforeAll(async ({ backends }) => {
    browser = await chromium.launch({
      executablePath: '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-background-networking'],
    })
    agent = await paidAgent(backends, { name: 'chart maker', description: 'Draws charts' })
  })
  test.afterAll(async () => {
    await browser?.close()
    await agent?.[Symbol.asyncDispose]()
  })

  for (const width of [360, 1280])
    test(`the test wallet pays at a width of ${width}, without clipped content or browser errors`, async () => {
      const page = await newPage(width)
      const session = await open(page, agent)
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
      await page.getByRole('button', { name: 'Pay with the test wallet' }).click()
      await expect(page.getByRole('heading', { level: 1 })).toHaveText('Paid')
      expect(await statusOf(agent, session)).toMatchObject({ status: 'completed', sandbox: true })
      await expect(page.getByText(String((await statusOf(agent, session))['tx_hash']))).toBeVisible()
      expect(page.complaints).toEqual([])
    })

  test('a keyboard user sees the focus, gets an error for an invalid payment, and pays with the test wallet', async () => {
    const page = await newPage(360)
    const session = await open(page, agent)
    const stops = await tabThrough(page, 'Pay with another program')
    expect(stops).toEqual(['Pay with the test wallet', 'Pay with another program'])
    await page.keyboard.press('Enter')
    await tabThrough(page, 'payment')
    await page.keyboard.type('no payment')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    const refusal = page.getByRole('alert')
    await expect(refusal).toContainText('This is not an x402 payment')
    await expect(refusal).toBeFocused()
    await tabThrough(page, 'Pay with the test wallet')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Paid')
    expect((await statusOf(agent, session)).status).toBe('completed')
  })

  for (const kind of ['EIP-6963', 'EIP-1193'] as const)
    test(`a browser wallet signs and pays (${kind})`, async () => {
      const page = await newPage(1280)
      await addWallet(page, kind)
      const session = await open(page, agent)
      const name = kind === 'EIP-6963' ? 'Pay with <b>Wallet</b>' : 'Pay with the browser wallet'
      await page.getByRole('button', { name, exact: true }).click()
      await expect(page.getByRole('heading', { level: 1 })).toHaveText('Paid')
      expect(await statusOf(agent, session)).toMatchObject({ status: 'completed', payer: payer.address })
      expect(page.complaints).toEqual([])
    })

  test('declining in the wallet shows a message, and the user can try again', async () => {
    const page = await newPage(1280)
    await addWallet(page, 'EIP-1193', 1)
    const session = await open(page, agent)
    const button = page.getByRole('button', { name: 'Pay with the browser wallet' })
    await button.click()
    await expect(page.getByRole('status')).toHaveText(
      'The payment was declined in your wallet. No money was taken.',
    )
    expect((await statusOf(agent, session)).status).toBe('pending')
    await button.click()
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Paid')
  })

  test('an open page updates when another payer pays', async () => {
    const [page, other] = [await newPage(360), await newPage(360)]
    const { capture_url: url } = await open(page, agent)
    await other.goto(url)
    await other.getByRole('button', { name: 'Pay with the test wallet' }).click()
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Paid')
  })

  test('markup in the texts of the page is escaped and not executed', async ({ backends }) => {
    const markup = `<img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`
    const extra = { name: `"'>${markup}`, version: '2' }
    await using hostile = await paidAgent(backends, {
      name: 'agent',
      description: markup,
      executionCost: { ...price, extra },
    })
    const page = await newPage(360)
    await open(page, hostile)
    await expect(page.getByText(markup).first()).toBeVisible()
    expect(await page.title()).not.toBe('owned')
    expect(await page.locator('main img, main script').count()).toBe(0)
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0)
  })

  test('without JavaScript the page is complete, and the test wallet pays', async () => {
    const context = await browser.newContext({ javaScriptEnabled: false })
    const page = await context.newPage()
    const session = await start(agent)
    await page.goto(session.capture_url)
    await expect(page.getByText(/1[45] minutes left/)).toBeVisible()
    await page.getByRole('button', { name: 'Pay with the test wallet' }).click()
    await expect(page.getByRole('heading', { level: 1 })).toHaveText('Paid')
    await context.close()
  })
})

const paidAgent = (backends: Backends, definition: Partial<TestDefinition>) =>
  testAgent({ handle: () => 'done', executionCost: price, ...definition }, { env: backends.newStore() })

async function start(on: TestAgent): Promise<Session> {
  const headers = { authorization: `Bearer ${on.caller('alice').token}` }
  const answer = await fetch(`${on.url}/api/start-payment-session`, { method: 'POST', headers })
  return (await answer.json()) as Session
}

async function open(page: Page, on: TestAgent): Promise<Session> {
  const session = await start(on)
  await page.goto(session.capture_url)
  return session
}

async function statusOf(on: TestAgent, { session_id: id }: Session): Promise<Session> {
  const headers = { authorization: `Bearer ${on.caller('alice').token}` }
  return (await (await fetch(`${on.url}/api/payment-status/${id}`, { headers })).json()) as Session
}

/** Errors that the browser reports: policy violations and script errors. */
async function newPage(width: number): Promise<Page & { complaints: string[] }> {
  const page = await browser.newPage({ viewport: { width, height: 800 } })
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(error.message))
  return Object.assign(page, { complaints })
}

/**
 * Presses Tab until the element with this text or name has the focus. Returns the texts on the way; each must show its
 * focus.
 */
async function tabThrough(page: Page, until: string): Promise<string[]> {
  const stops: string[] = []
  while (stops.at(-1) !== until && stops.length < 20) {
    await page.keyboard.press('Tab')
    const { text, outline } = (await page.evaluate(`(() => {
      const on = document.activeElement
      return { text: on.name === 'payment' ? 'payment' : on.textContent.trim(), outline: getComputedStyle(on).outlineWidth }
    })()`)) as { text: string; outline: string }
    expect(outline).toBe('3px')
    stops.push(text)
  }
  return stops
}

/** Injects a browser wallet that declines the first requests. Its key stays in the test. */
async function addWallet(page: Page, kind: 'EIP-6963' | 'EIP-1193', declines = 0): Promise<void> {
  let left = declines
  await page.exposeFunction('askWallet', async (method: string, params: unknown[]) => {
    if (method === 'eth_requestAccounts') return [payer.address]
    if (method === 'eth_chainId') return '0x14a34'
    if (method !== 'eth_signTypedData_v4') throw new Error(method)
    if (left-- > 0) return 'declined'
    return payer.signTypedData(JSON.parse(params[1] as string) as never)
  })
  await page.addInitScript(`
    const provider = { request: async ({ method, params }) => {
      const answer = await askWallet(method, params)
      if (answer === 'declined') throw Object.assign(new Error('declined'), { code: 4001 })
      return answer
    } }
    if (${JSON.stringify(kind)} === 'EIP-1193') window.ethereum = provider
    else addEventListener('eip6963:requestProvider', () => dispatchEvent(new CustomEvent('eip6963:announceProvider',
      { detail: { info: { uuid: '1', name: '<b>Wallet</b>' }, provider } })))
  `)
}
