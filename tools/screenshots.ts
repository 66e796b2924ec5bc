import { mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { AgentClient } from '@parley/client/internal/client'
import {
  consoleAgents,
  developerToken,
  fillConsole,
  firstOperator,
  type SentTasks,
} from '@parley/e2e/harness/console-data'
import { loaded, openConsole, startChromium } from '@parley/e2e/harness/console-pages'
import { Deployment } from '@parley/e2e/harness/deployment'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import type { Browser, Page } from '@playwright/test'

/**
 * `npm run screenshots` writes a picture of each screen of the console to docs/screenshots/, for a phone and a desktop, light and
 * dark. Run it after changes of the pages. `--only agents,try` writes some screens.
 */

const folder = path.join(import.meta.dirname, '..', 'docs', 'screenshots')
const quality = 55
const sizes = [
  { width: 360, height: 780 },
  { width: 1280, height: 860 },
] as const
const themes = ['light', 'dark'] as const

/** The path of each screen below /console. */
const screens = ({ chain, webhook, delivery, decision }: SentTasks): Record<string, string> => ({
  overview: '',
  tasks: '/tasks',
  task: `/tasks/${chain}?agent=planner`,
  decisions: '/decisions',
  decision: `/decisions/${decision}`,
  try: '/try',
  waiting: '/waiting',
  agents: '/agents',
  agent: '/agents/planner',
  webhooks: `/webhooks?task=${webhook}`,
  webhook: delivery,
  money: '/money',
  payments: '/money?tab=payments',
  clients: '/clients',
  client: '/clients/dev-client',
  accounts: '/accounts',
  audit: '/audit',
})

/** Pays for a message with test money. */
async function paidMessage(browser: Browser, url: string, token: string, text: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const start = await fetch(`${url}/agents/reporter/api/start-payment-session`, {
    method: 'POST',
    headers,
    body: '{}',
  })
  const session = (await start.json()) as { session_id: string; capture_url: string }
  const page = await browser.newPage()
  await page.goto(session.capture_url)
  await page.getByRole('button', { name: 'Pay with the test wallet' }).click()
  await page.getByRole('heading', { name: 'Paid' }).waitFor()
  await page.close()
  const reporter = new AgentClient({ url: `${url}/agents/reporter`, token })
  const parts = [{ kind: 'text' as const, text }]
  const task = await reporter.send({ parts, metadata: { payment_session_id: session.session_id } })
  await reporter.wait(task.id)
}

/** Talks to the agent that the gateway chooses, so that the chat is not empty. */
async function talk(page: Page, url: string): Promise<string> {
  await page.goto(`${url}/console/try`)
  await page.getByLabel('Your message').fill('Research facts about the history of tea')
  await page.keyboard.press('Enter')
  await page.getByRole('log').getByText('Completed').waitFor()
  return new URL(page.url()).search
}

/** Chromium writes WebP, which is a third of the size of PNG. */
async function picture(page: Page, name: string): Promise<void> {
  const devtools = await page.context().newCDPSession(page)
  const { data } = await devtools.send('Page.captureScreenshot', { format: 'webp', quality })
  await devtools.detach()
  writeFileSync(path.join(folder, `${name}.webp`), Buffer.from(data, 'base64'))
}

const { values } = parseArgs({ options: { only: { type: 'string' } } })
const only = values.only?.split(',')
await using receiver = await WebhookReceiver.start({ answer: 503 })
await using browser = await startChromium()
const deployment = await Deployment.start({ kind: 'embedded', newStore: () => ({}) }, {}, consoleAgents)
try {
  const { url } = deployment
  const sent = await fillConsole(deployment, receiver.url)
  const token = await developerToken(deployment)
  for (const text of ['the market of tea', 'the market of coffee', 'a broken market'])
    await paidMessage(browser, url, token, text)
  const page = await openConsole(browser, url, firstOperator(deployment), { reducedMotion: 'reduce' })
  const paths = { ...screens(sent), try: `/try${await talk(page, url)}` }
  const wanted = Object.entries(paths).filter(([name]) => only?.includes(name) ?? true)
  if (only === undefined) rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  let bytes = 0
  for (const [name, to] of wanted)
    for (const size of sizes)
      for (const colorScheme of themes) {
        await page.setViewportSize(size)
        await page.emulateMedia({ colorScheme })
        await page.goto(`${url}/console${to}`)
        await loaded(page, /./)
        await page.waitForLoadState('load')
        await page.evaluate('document.fonts.ready')
        const file = `${name}-${size.width}-${colorScheme}`
        await picture(page, file)
        bytes += statSync(path.join(folder, `${file}.webp`)).size
      }
  console.log(`${wanted.length * sizes.length * themes.length} pictures, ${Math.ceil(bytes / 1024)} KiB`)
} finally {
  await deployment.remove()
}
