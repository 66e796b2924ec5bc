/**
 * The first screen of the console in Chromium with an empty cache: the time from the navigation until the overview shows
 * its data, and the bytes on the wire. Each round opens a new browser profile with the cookie of a session.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { type Browser, chromium } from '@playwright/test'
import { z } from 'zod'
import { ServerProcess } from './servers/server-process.ts'
import { median, quick } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'

const rounds = quick ? 5 : 15
const [msMax, bytesMax] = [300, 150_000]

await using stack = new AsyncDisposableStack()
const folder = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
stack.defer(() => rm(folder, { recursive: true, force: true }))
const { address: url } = stack.use(
  await ServerProcess.start({
    args: ['--disable-warning=ExperimentalWarning', `${import.meta.dirname}/servers/gateway-process.ts`],
    core: 'any',
    env: { DATA_DIR: folder, UPSTREAM: 'http://127.0.0.1:9', AGENTS: '8' },
  }),
)
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
stack.defer(() => browser.close())
const cookies = await signIn(browser, await addAccount())

interface Load {
  paintMs: number
  contentMs: number
  bytes: number
  requests: number
}

async function load(from: Browser): Promise<Load> {
  await using context = await from.newContext({ viewport: { width: 1280, height: 800 } })
  await context.addCookies(cookies)
  const page = await context.newPage()
  const wire = await context.newCDPSession(page)
  await wire.send('Network.enable')
  const found = { bytes: 0, requests: 0 }
  wire.on('Network.loadingFinished', ({ encodedDataLength }) => {
    found.bytes += encodedDataLength
    found.requests += 1
  })
  await page.goto(`${url}/console/`, { waitUntil: 'commit' })
  // The page measures with its own clock, so that the time of the test program does not count.
  const contentMs = await page.evaluate<number>(`new Promise((resolve) => {
    const look = () => (document.querySelector('main .card') && !document.querySelector('main .skeleton') ? resolve(performance.now()) : requestAnimationFrame(look))
    look()
  })`)
  const paintMs = await page.evaluate<number>(
    `performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0`,
  )
  return { ...found, paintMs, contentMs }
}

async function addAccount(): Promise<{ name: string; password: string }> {
  const text = await readFile(path.join(folder, 'oauth', 'operator-client.json'), 'utf8')
  const client = z.object({ client_id: z.string(), client_secret: z.string() }).parse(JSON.parse(text))
  const form = { grant_type: 'client_credentials', scope: 'agent:admin', ...client }
  const granted = await fetch(`${url}/oauth2/token`, { method: 'POST', body: new URLSearchParams(form) })
  const { access_token } = z.object({ access_token: z.string() }).parse(await granted.json())
  const added = await fetch(`${url}/operator/accounts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'ada', role: 'operator' }),
  })
  return z.object({ name: z.string(), password: z.string() }).parse(await added.json())
}

async function signIn(from: Browser, { name, password }: { name: string; password: string }) {
  await using context = await from.newContext()
  const page = await context.newPage()
  await page.goto(`${url}/console/sign-in`)
  await page.getByLabel('Account').fill(name)
  await page.getByLabel('Password').fill(password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${url}/console/`)
  return context.cookies()
}

await load(browser)
const loads: Load[] = []
for (let round = 0; round < rounds; round += 1) loads.push(await load(browser))
const of = (name: keyof Load) => median(loads.map((one) => one[name]))
const figures = {
  paintMs: of('paintMs'),
  contentMs: of('contentMs'),
  bytes: of('bytes'),
  requests: of('requests'),
}
printTable(
  ['first screen, empty cache', 'median'],
  Object.entries(figures).map(([name, value]) => [name, value.toFixed(0)]),
)
expectAtMost('first content ms', figures.contentMs, msMax)
expectAtMost('bytes on the wire', figures.bytes, bytesMax)
await saveResults('console-first-screen', figures)
