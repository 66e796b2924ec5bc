import { type Browser, type BrowserContextOptions, chromium, expect, type Page } from '@playwright/test'

/** Starts the Chromium of the machine. */
export const startChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-background-networking'],
  })

/** A page of the console, with the errors that the browser reported. */
export interface ConsolePage extends Page {
  faults: string[]
}

export interface Credentials {
  account: string
  password: string
}

/** Opens the console in a new browser context and signs in. */
export async function openConsole(
  browser: Browser,
  url: string,
  credentials: Credentials,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options })
  const page = Object.assign(await context.newPage(), { faults: [] as string[] })
  page.on('pageerror', (error) => page.faults.push(String(error)))
  page.on('console', (message) => {
    // A request without a session is answered with 401 before the sign-in, and with 503 on a machine under load.
    if (message.type() === 'error' && !/\b(401|402|503)\b/.test(message.text()))
      page.faults.push(message.text())
  })
  await page.goto(`${url}/console/`)
  await signIn(page, credentials)
  return page
}

/** Completes the form of the sign-in page. */
export async function signIn(page: Page, { account, password }: Credentials): Promise<void> {
  await page.getByLabel('Account').fill(account)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await expect(page.locator('main h1')).toBeVisible()
}

/** Resolves when the screen has loaded its data. */
export async function loaded(page: Page, heading: string | RegExp): Promise<void> {
  await expect(page.getByRole('heading', { level: 1, name: heading })).toBeVisible()
  await expect(page.getByRole('status', { name: /^Loading/ })).toHaveCount(0)
}
