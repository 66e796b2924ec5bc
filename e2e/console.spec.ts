import { AxeBuilder } from '@axe-core/playwright'
import { onPath } from '@parley/tools/install-programs'
import { WebhookReceiver } from '@parley/tools/testing/webhook-receiver'
import { type Browser, expect, type Page, type Route } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { consoleAgents, fillConsole, firstOperator, type SentTasks } from './harness/console-data.ts'
import {
  type ConsolePage,
  type Credentials,
  loaded,
  openConsole,
  signIn,
  startChromium,
} from './harness/console-pages.ts'
import { Deployment } from './harness/deployment.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

let deployment: Deployment
let receiver: WebhookReceiver
let browser: Browser
let page: ConsolePage
let sent: SentTasks
let operator: Credentials
const caller: Credentials = { account: 'ben', password: '' }

test.describe('the console (needs chromium)', () => {
  test.skip(!onPath('chromium'), 'chromium is not installed')

  test.beforeAll(async ({ backends }) => {
    browser = await startChromium()
    receiver = await WebhookReceiver.start({ answer: 503 })
    deployment = await Deployment.start(backends, {}, consoleAgents)
    operator = firstOperator(deployment)
    sent = await fillConsole(deployment, receiver.url)
    page = await openConsole(browser, deployment.url, operator)
  })
  test.afterAll(async () => {
    await browser?.close()
    await deployment?.remove()
    await receiver?.[Symbol.asyncDispose]()
  })

  /** Screens with the data that they show. */
  const screens = (): [path: string, heading: string | RegExp, text: string | RegExp][] => [
    ['', 'Overview', 'researcher'],
    ['/tasks', 'Tasks', 'A weekend in Lisbon'],
    [`/tasks/${sent.chain}?agent=planner`, 'A weekend in Lisbon', 'Whole chain'],
    ['/decisions', 'Decisions', 'researcher'],
    [`/decisions/${sent.decision}`, /./, 'researcher'],
    ['/try', 'Try it', 'The gateway chooses an agent'],
    ['/waiting', 'Waiting for a person', 'Which tone should the text have'],
    ['/agents', 'Agents', 'Collects facts about a subject'],
    ['/agents/planner', 'planner', 'Plan a weekend in Lisbon'],
    ['/webhooks', 'Webhooks', receiver.url],
    [sent.delivery, 'Webhook', '503'],
    ['/money', 'Money', 'dev-client'],
    ['/money?tab=payments', 'Money', 'No payments yet'],
    ['/clients', 'Clients', 'dev-client'],
    ['/clients/dev-client', 'Development', 'No long-lived keys'],
    ['/accounts', 'Accounts', 'this one'],
    ['/audit', 'Audit', 'console.sign_in'],
  ]

  for (const [width, colorScheme] of [
    [1280, 'light'],
    [360, 'dark'],
  ] as const)
    test(`every screen shows real data without an accessibility violation (${width}, ${colorScheme})`, async () => {
      await page.setViewportSize({ width, height: 860 })
      await page.emulateMedia({ colorScheme })
      const found: string[] = []
      for (const [path, heading, text] of screens()) {
        await page.goto(`${deployment.url}/console${path}`)
        await loaded(page, heading)
        await expect(page.locator('main').getByText(text).filter({ visible: true }).first()).toBeVisible()
        // Without frames of other origins, the legacy mode finds the same in half the time, because it opens no further page.
        const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze()
        found.push(...violations.map(({ id, nodes }) => `${path}: ${id} ${nodes[0]?.html}`))
        const isClipped = await page.evaluate('document.documentElement.scrollWidth > innerWidth')
        found.push(...(isClipped ? [`${path}: wider than the window`] : []))
      }
      expect(found).toEqual([])
      expect(page.faults).toEqual([])
      await page.setViewportSize({ width: 1280, height: 860 })
    })

  test('a reader reaches an agent with the keyboard, and the heading has the focus', async () => {
    await page.goto(`${deployment.url}/console`)
    await loaded(page, 'Overview')
    await page.keyboard.press('Tab')
    await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused()
    await page.keyboard.press('Enter')
    await page.keyboard.press('g')
    await page.keyboard.press('a')
    await loaded(page, 'Agents')
    await expect(page.getByRole('heading', { level: 1 })).toBeFocused()
    const focused = () => page.evaluate<unknown>('document.activeElement.textContent')
    for (let stops = 0; stops < 30 && (await focused()) !== 'editor'; stops += 1)
      await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await loaded(page, 'editor')
    await expect(page).toHaveURL(/\/console\/agents\/editor$/)
  })

  test('an operator corrects a decision, and removes with the keyboard what was learned from it', async () => {
    await page.goto(`${deployment.url}/console/decisions/${sent.decision}`)
    await page.getByRole('button', { name: 'This was the wrong agent' }).click()
    await page.getByRole('combobox', { name: 'The right agent' }).fill('nothing')
    await page.getByRole('button', { name: 'Record it' }).click()
    await expect(page.getByText('no agent with this name is registered').first()).toBeVisible()
    expect(page.faults.splice(0)).toEqual([expect.stringContaining('status of 400')])
    await page.getByRole('combobox', { name: 'The right agent' }).fill('editor')
    await page.getByRole('button', { name: 'Record it' }).click()
    await expect(page.getByText('the gateway has learned from it')).toBeVisible()
    await page.goto(`${deployment.url}/console/agents/editor`)
    await loaded(page, 'editor')
    const learned = page.locator('#learned')
    await expect(learned.getByText('1: 1 positive, 0 negative')).toBeVisible()
    await expect(learned.getByText('coffe')).toBeVisible()
    const { violations } = await new AxeBuilder({ page }).setLegacyMode(true).analyze()
    expect(violations).toEqual([])
    await learned.getByRole('button', { name: 'Forget …' }).press('Enter')
    const dialog = page.getByRole('dialog', { name: 'Forget what was learned about editor?' })
    await dialog.getByRole('button', { name: 'Forget', exact: true }).press('Enter')
    await expect(learned.getByText('Nothing is learned yet')).toBeVisible()
    await expect(dialog).toHaveCount(0)
  })

  test('a screen that loads slowly does not replace the one to which the reader has gone', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    await page.goto(`${deployment.url}/console/tasks`)
    await loaded(page, 'Tasks')
    const slow = '**/console/assets/screens/overview/overview.js'
    await page.route(slow, (route) => released.then(() => route.continue()))
    await page.getByRole('link', { name: 'Overview', exact: true }).click()
    await expect(page).toHaveURL(`${deployment.url}/console`)
    await page.getByRole('link', { name: 'Decisions', exact: true }).click()
    await loaded(page, 'Decisions')
    release()
    await page.evaluate(`import('/console/assets/screens/overview/overview.js')
      .then(() => new Promise(requestAnimationFrame)).then(() => new Promise(requestAnimationFrame))`)
    await expect(page.getByRole('heading', { level: 1, name: 'Decisions' })).toBeVisible()
    await page.unroute(slow)
  })

  test('a conversation streams, names the chosen agent with its decision, and survives a reload', async () => {
    await page.goto(`${deployment.url}/console/try`)
    await page.getByLabel('Your message').fill('Research facts about the history of tea')
    await page.keyboard.press('Enter')
    const answer = page.getByRole('log').getByText('and it is liked.')
    await expect(answer).toBeVisible()
    await expect(page.getByRole('log').getByText('Completed')).toBeVisible()
    await expect(page).toHaveURL(/context=/)
    await page.reload()
    await expect(answer).toBeVisible()
    await page.getByRole('link', { name: 'Why this agent?' }).click()
    await expect(page.locator('main').getByText('researcher').first()).toBeVisible()
  })

  test('the next message answers the question of a task, and the raw requests can be read', async () => {
    await page.goto(`${deployment.url}/console/try?agent=editor`)
    await page.getByLabel('Your message').fill('Dear all')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('log').getByText('Which tone should the text have')).toBeVisible()
    await page.getByLabel('Your answer').fill('friendly')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('log').getByText('Edited, friendly.')).toBeVisible()
    await page.getByRole('tab', { name: /Request and response/ }).click()
    await expect(page.getByText('POST /agents/editor/').first()).toBeVisible()
    await expect(page.getByText('"state": "completed"').first()).toBeVisible()
  })

  test('a request that the server refuses for a moment is repeated, and so is a list without some agents', async () => {
    await page.route('**/console/api/agents/editor/', refuseForASecond, { times: 1 })
    await page.goto(`${deployment.url}/console/try?agent=editor`)
    await page.getByLabel('Your message').fill('Dear colleagues')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('log').getByText('Which tone should the text have')).toBeVisible()
    await expect(page.getByRole('tab', { name: 'Request and response 1' })).toBeVisible()
    await page.route(/\/console\/api\/operator\/tasks(\?|$)/, withoutReporter, { times: 1 })
    await page.goto(`${deployment.url}/console/tasks`)
    await expect(
      page.getByText('The entries of the agent reporter are missing from this list.'),
    ).toBeVisible()
    await expect(page.getByText('Dear colleagues').first()).toBeVisible()
  })

  test('a message that costs something is sent after its payment', async () => {
    await page.goto(`${deployment.url}/console/try?agent=reporter`)
    await page.getByLabel('Your message').fill('tea')
    await page.keyboard.press('Enter')
    await page.getByRole('button', { name: 'Show the terms and pay' }).click()
    const opened = page.context().waitForEvent('page')
    await page.getByRole('link', { name: 'Open the payment page' }).click()
    const payment = await opened
    await payment.getByRole('button', { name: 'Pay with the test wallet' }).click()
    await expect(page.getByRole('log').getByText('Report on tea: prices are stable.')).toBeVisible()
    await payment.close()
    await page.goto(`${deployment.url}/console/money?tab=payments`)
    await expect(page.getByRole('cell', { name: '0.01 USDC' }).first()).toBeVisible()
  })

  test('a pause is answered on the screen Waiting', async () => {
    await page.goto(`${deployment.url}/console/try?agent=editor`)
    await page.getByLabel('Your message').fill('A letter to the bank')
    await page.keyboard.press('Enter')
    await expect(page.getByRole('log').getByText('Which tone should the text have')).toBeVisible()
    await page.goto(`${deployment.url}/console/waiting`)
    const pause = page.getByRole('article').filter({ hasText: 'A letter to the bank' })
    await pause.getByLabel('Your answer').fill('formal')
    await pause.getByRole('button', { name: 'Answer' }).click()
    await expect(pause).toHaveCount(0)
    await expect(page.getByRole('article').filter({ hasText: 'Dear all' }).first()).toBeVisible()
  })

  test('a failing webhook shows its attempts and is sent again', async () => {
    await page.goto(`${deployment.url}/console/webhooks`)
    await page.getByRole('link', { name: receiver.url }).first().click()
    await loaded(page, 'Webhook')
    await expect(page.getByRole('cell', { name: /^503/ }).first()).toBeVisible()
    const before = receiver.posts.length
    receiver.answer = 200
    await page.getByRole('button', { name: 'Resend …' }).click()
    await page.getByRole('button', { name: 'Resend', exact: true }).click()
    await receiver.waitFor((posts) => posts.length > before)
    await expect(page.locator('main').getByText('Delivered').first()).toBeVisible()
  })

  test('hostile texts and files are shown as text or in a frame without access to the page', async () => {
    for (const path of [`/tasks/${sent.hostile}?agent=collector`, '/agents/collector', '/agents']) {
      await page.goto(`${deployment.url}/console${path}`)
      await loaded(page, /./)
      expect(await page.locator('main script, main img[src="x"], main a[href^="javascript:"]').count()).toBe(
        0,
      )
    }
    await page.goto(`${deployment.url}/console/tasks/${sent.hostile}?agent=collector`)
    await expect(page.locator('main').getByText('<script>').first()).toBeVisible()
    await expect(page.locator('main').getByText('U+202E').first()).toBeVisible()
    const show = page.getByRole('button', { name: 'Show it in a sandboxed frame' })
    await expect(show).toHaveCount(2)
    await show.last().click()
    await show.first().click()
    await expect(page.locator('iframe').first()).toBeVisible()
    for (const frame of await page.locator('iframe').all())
      expect(await frame.getAttribute('sandbox')).not.toContain('allow-same-origin')
    await expect(page).not.toHaveTitle('owned')
  })

  test('a PDF artifact is drawn in a sandboxed frame, and its scripts and links do nothing', async () => {
    await page.goto(`${deployment.url}/console/tasks/${sent.hostile}?agent=collector`)
    const show = page.getByRole('button', { name: 'Show the pages' })
    await expect(show).toHaveCount(2)
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    await show.first().click()
    await expect(page.locator('iframe')).toHaveAttribute('sandbox', 'allow-scripts')
    const document = page.frameLocator('iframe')
    await expect(document.getByText('Figures of the week').first()).toBeVisible()
    const canvas = document.locator('canvas').first()
    await expect.poll(() => canvas.evaluate(colorOf)).toEqual([69, 84, 214, 255])
    expect(await document.locator('a, [href], script:not([nonce])').count()).toBe(0)
    await document.getByRole('button', { name: 'Show pages 6 to 7 of 7' }).click()
    await expect(document.getByRole('region', { name: 'Page 7 of 7' })).toBeVisible()
    expect(requests.filter((url) => !url.startsWith(`${deployment.url}/console/`))).toEqual([])
    await show.click()
    const damaged = page.frameLocator('iframe').last()
    await expect(damaged.getByRole('alert')).toHaveText(/is damaged or is not a PDF. Save it/)
    await expect(page).not.toHaveTitle('owned')
    const { violations } = await new AxeBuilder({ page }).analyze()
    expect(violations.map(({ id, nodes }) => `${id} ${nodes[0]?.html}`)).toEqual([])
    expect(page.faults).toEqual([])
  })

  test('a caller that an operator adds sees its own work only', async () => {
    await page.goto(`${deployment.url}/console/accounts`)
    await page.getByRole('button', { name: 'Add an account' }).click()
    await page.getByRole('textbox', { name: 'Name' }).fill(caller.account)
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    caller.password = await page.locator('code.password').innerText()
    await page.getByRole('button', { name: 'Done' }).click()
    const own = await openConsole(browser, deployment.url, caller)
    await loaded(own, 'Tasks')
    await expect(
      own.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Clients' }),
    ).toHaveCount(0)
    await expect(own.locator('main').getByText('A weekend in Lisbon')).toHaveCount(0)
    await own.goto(`${deployment.url}/console/clients`)
    await expect(own.getByText('This screen is for operators')).toBeVisible()
    await own.context().close()
  })

  test('an operator sees the change of another one, and a refusal is a sentence', async () => {
    const second = await openConsole(browser, deployment.url, operator)
    await page.goto(`${deployment.url}/console/agents/editor`)
    await second.goto(`${deployment.url}/console/agents/editor`)
    await loaded(second, 'editor')
    await page.getByRole('button', { name: 'Quarantine …' }).click()
    await page.getByRole('textbox', { name: /Reason/ }).fill('Wrong tone')
    await page.getByRole('button', { name: 'Quarantine', exact: true }).click()
    await expect(second.locator('main').getByText('Wrong tone').first()).toBeVisible()
    await release(second)
    await expect(page.getByRole('button', { name: 'Quarantine …' })).toBeVisible()
    await second.goto(`${deployment.url}/console/accounts`)
    const row = second.getByRole('row', { name: /^ben/ }).first()
    await row.getByRole('button', { name: 'Disable …' }).click()
    await removeAccount(page, caller.account)
    await second.getByRole('button', { name: 'Disable', exact: true }).click()
    await expect(second.getByRole('alert')).toContainText('The page now shows the present state')
    await second.getByRole('button', { name: 'Keep as it is' }).click()
    await expect(row).toHaveCount(0)
    await second.context().close()
  })

  test('an ended session leads to the sign-in page and back to the same screen', async () => {
    const other = await openConsole(browser, deployment.url, operator)
    await other.goto(`${deployment.url}/console/audit?action=console.*`)
    await loaded(other, 'Audit')
    await page.goto(`${deployment.url}/console/accounts`)
    const revoke = page.getByRole('button', { name: 'Revoke …' })
    await expect(revoke.first()).toBeVisible()
    for (let left = await revoke.count(); left > 0; left -= 1) {
      await revoke.first().click()
      await page.getByRole('button', { name: 'End the session' }).click()
      await expect(revoke).toHaveCount(left - 1)
    }
    await other.getByRole('link', { name: 'Refused' }).click()
    await expect(other.getByLabel('Password')).toBeVisible()
    await signIn(other, operator)
    await loaded(other, 'Audit')
    await expect(other).toHaveURL(/\/console\/audit\?allowed=false/)
    await other.context().close()
  })
})

interface Canvas {
  width: number
  height: number
  getContext(kind: '2d'): { getImageData(...area: number[]): { data: Iterable<number> } }
}

/** The colour of a point in the blue area of the document. Runs in the browser. */
function colorOf(element: unknown): number[] {
  const canvas = element as Canvas
  return [...canvas.getContext('2d').getImageData(canvas.width * 0.4, canvas.height * 0.7, 1, 1).data]
}

async function release(page: Page): Promise<void> {
  await page.getByRole('button', { name: 'Release …' }).click()
  await page.getByRole('button', { name: 'Release', exact: true }).click()
}

async function removeAccount(page: Page, name: string): Promise<void> {
  await page.goto(page.url().replace(/\/console\/.*/, '/console/accounts'))
  const row = page.getByRole('row', { name: new RegExp(`^${name}`) }).first()
  await row.getByRole('button', { name: 'Remove …' }).click()
  await page.getByRole('button', { name: 'Remove', exact: true }).click()
  await expect(row).toHaveCount(0)
}

async function refuseForASecond(route: Route): Promise<void> {
  const error = { code: -32042, message: 'The OAuth server is unavailable' }
  await route.fulfill({
    status: 503,
    headers: { 'retry-after': '1' },
    json: { jsonrpc: '2.0', id: 1, error },
  })
}

async function withoutReporter(route: Route): Promise<void> {
  const unread = [{ agent: 'reporter', reason: 'no response in time' }]
  await route.fulfill({ json: { tasks: [], next_cursor: null, unread } })
}
