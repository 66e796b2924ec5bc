import path from 'node:path'
import { type GatewayApp, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { TestBrowser } from '@parley/gateway/console/testing'
import { makeLog } from '@parley/kit/process/log'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

let folder: ReturnType<typeof temporaryFolder>
let gateway: GatewayApp

beforeAll(async () => {
  folder = temporaryFolder()
  const settings = gatewayConfig({ PORT: '0', DATA_DIR: path.join(folder.path, '.parley') })
  gateway = await startGatewayApp({ settings, log: makeLog({ level: 'silent', name: 'test' }) })
})
afterAll(async () => {
  await gateway[Symbol.asyncDispose]()
  folder[Symbol.dispose]()
})

const cli = (...argv: string[]) =>
  runCli(['operators', ...argv, '--url', gateway.addresses.public], { cwd: folder.path })

const passwordIn = (stdout: string) => /^password +(\S+)$/m.exec(stdout)?.[1] ?? ''

async function signsIn(name: string, password: string): Promise<boolean> {
  const browser = new TestBrowser(gateway.addresses.public)
  await browser.signIn(name, password)
  return (await browser.fetch('/console/session')).status === 200
}

test('operators adds, lists, disables and removes the people who may sign in', async () => {
  expect((await cli()).stdout).toBe('No accounts: npx parley operators add <name> adds one.\n')
  const added = await cli('add', 'ada')
  expect(added.stdout).toMatch(
    /^account +ada\nrole +operator\nclient +console:ada:[0-9a-f]{10}\npassword +\S{23}\n/,
  )
  const password = passwordIn(added.stdout)
  await cli('add', 'bob', '--role', 'caller', '--client', 'dev-client')
  expect(await signsIn('ada', password)).toBe(true)
  const { stdout } = await cli()
  expect(stdout).toMatch(
    /^NAME +ROLE +CLIENT +LAST SIGN-IN \(UTC\)\nada +operator +console:ada:\w+ +20\S+ \S+\n/,
  )
  expect(stdout).toMatch(/\nbob +caller +dev-client +never\n$/)
  expect((await cli('disable', 'ada')).stdout).toBe('ada is disabled.\n')
  expect(await signsIn('ada', password)).toBe(false)
  expect((await cli('enable', 'ada')).stdout).toBe('ada is enabled.\n')
  const reset = passwordIn((await cli('reset-password', 'ada')).stdout)
  expect([await signsIn('ada', password), await signsIn('ada', reset)]).toEqual([false, true])
  expect((await cli('remove', 'ada')).stdout).toBe('ada is removed.\n')
  expect(await signsIn('ada', reset)).toBe(false)
})

test('operators sessions lists the open sessions, and revoke ends one', async () => {
  const browser = new TestBrowser(gateway.addresses.public)
  await browser.signIn('eve', passwordIn((await cli('add', 'eve')).stdout))
  const { stdout } = await cli('sessions')
  expect(stdout).toMatch(
    /^SESSION +NAME +LAST REQUEST \(UTC\) +ADDRESS\n\S+ +eve +20\S+ \S+ +127\.0\.0\.1\n$/,
  )
  const id = stdout.split('\n')[1]?.split(' ')[0] ?? ''
  expect((await cli('revoke', id)).stdout).toBe(`${id} is ended.\n`)
  expect((await browser.fetch('/console/session')).status).toBe(401)
  expect((await cli('sessions')).stdout).toBe('No open sessions.\n')
})

test.each([
  [['add'], 'add takes the name of an account'],
  [['fire', 'x'], '"fire" is not an action'],
  [['remove', 'x', '--role', 'caller'], '--role and --client belong to add'],
  [['add', 'x', '--role', 'king'], '--role is operator or caller'],
  [['add', 'x', '--client', 'dev-client'], 'use --client with --role caller'],
  [['remove', 'no-such'], 'Account not found'],
  [['add', 'UPPER'], '<name>'],
])('operators %j names the command to use instead', async (argv, text) => {
  const { code, stderr } = await cli(...argv)
  expect(code).not.toBe(0)
  expect(stderr).toContain(text)
})
