import path from 'node:path'
import { type GatewayApp, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
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

const cli = (...argv: string[]) => runCli([...argv, '--url', gateway.addresses.public], { cwd: folder.path })

async function clientNamed(name: string): Promise<string> {
  const { stdout: initial } = await runCli(['token', '--initial'], { cwd: folder.path })
  const response = await fetch(`${gateway.addresses.public}/oauth2/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: name,
      grant_types: ['client_credentials'],
      scope: 'agent:read agent:write',
    }),
  })
  return ((await response.json()) as { client_id: string }).client_id
}

test('the list shows each client with its kind, scope, limits and tags', async () => {
  const id = await clientNamed('Nightly report')
  await cli('clients', 'limit', id, '--scope', 'agent:read', '--per-minute', '60')
  await cli('clients', 'tag', id, 'eu', 'partner')
  const { code, stdout } = await cli('clients', '--query', id)
  expect(code).toBe(0)
  expect(stdout).toMatch(/^CLIENT +NAME +KIND +SCOPE +LAST USED +LIMITS AND TAGS\n/)
  expect(stdout).toContain(id)
  expect(stdout).toMatch(
    /Nightly report +registered +agent:read agent:write +never +agent:read, 60 a minute, #eu, #partner\n$/,
  )
  expect((await cli('clients', '--query', 'no such client')).stdout).toBe('No clients.\n')
  expect((await cli('clients')).stdout).toMatch(/\noperator +Operator +managed/)
  const { clients } = JSON.parse((await cli('clients', 'list', '--query', id, '--json')).stdout) as {
    clients: unknown[]
  }
  expect(clients).toMatchObject([{ id, tags: ['eu', 'partner'] }])
})

test('limit, tag, revoke, enable and remove change a client and show it', async () => {
  const id = await clientNamed('a')
  const limited = await cli('clients', 'limit', id, '--expires', '30d', '--resource', 'https://a.example')
  expect(limited.stdout).toMatch(/limits +until 20\d\d-\d\d-\d\d, for https:\/\/a\.example\n/)
  expect((await cli('clients', 'limit', id, '--none')).stdout).not.toContain('limits')
  expect((await cli('clients', 'tag', id, 'x')).stdout).toMatch(/tags +x\n/)
  expect((await cli('clients', 'tag', id)).stdout).not.toContain('tags')
  expect((await cli('clients', 'revoke', id)).stdout).toMatch(/kind +registered, revoked\n/)
  expect((await cli('clients', 'enable', id)).stdout).toMatch(/kind +registered\n/)
  expect((await cli('clients', 'remove', id)).stdout).toBe(`${id} is removed.\n`)
  expect(await cli('clients', 'show', id)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Client not found'),
  })
})

test('token --long-lived prints a key once, which is listed, usable and revocable', async () => {
  const made = await cli(
    'token',
    '--long-lived',
    '--name',
    'cron',
    '--scope',
    'agent:read',
    '--expires',
    '30d',
  )
  expect(made).toMatchObject({ code: 0, stdout: expect.stringMatching(/^plk_[0-9A-Za-z]{49}\n$/) })
  const [, id = ''] = /^Key ([\da-f]{32}) of dev-client with agent:read, until 20/.exec(made.stderr) ?? []
  const headers = { authorization: `Bearer ${made.stdout.trim()}` }
  const use = () => fetch(`${gateway.addresses.public}/client-keys`, { headers })
  expect((await use()).status).toBe(200)
  expect((await cli('clients', 'keys')).stdout).toMatch(
    new RegExp(`^KEY .*\\n${id} +dev-client +cron +agent:read +http:\\S+ +20`),
  )
  expect((await cli('clients', 'show', 'dev-client')).stdout).toMatch(
    new RegExp(`key +${id} cron: agent:read, for http:\\S+, until 20`),
  )
  expect((await cli('clients', 'revoke-key', id)).stdout).toBe(`${id} is revoked.\n`)
  expect((await use()).status).toBe(401)
  expect((await cli('clients', 'keys', 'dev-client')).stdout).toBe('No keys.\n')
})

test('an operator creates a key for another client, and a key with agent:admin after a confirmation', async () => {
  const id = await clientNamed('b')
  const made = await cli('token', '--long-lived', '--client', id)
  expect(made.stderr).toContain(`of ${id} with agent:read agent:write`)
  const refused = await cli('token', '--long-lived', '--client', 'operator', '--scope', 'agent:admin')
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('--admin') })
  const admin = await cli('token', '--long-lived', '--admin', '--scope', 'agent:admin', '--expires', '1d')
  expect(admin.stderr).toContain('of operator with agent:admin')
})

test.each([
  [['clients', 'explode', 'x'], 'is not an action'],
  [['clients', 'revoke'], 'takes the id of a client'],
  [['clients', 'revoke-key'], 'takes the id of a key'],
  [['clients', 'revoke', 'a', 'b'], 'takes one id'],
  [['clients', 'limit', 'a'], 'name at least one'],
  [['clients', 'limit', 'a', '--none', '--scope', 'agent:read'], 'name at least one'],
  [['clients', 'limit', 'a', '--expires', 'soon'], 'must be a duration'],
  [['clients', 'limit', 'a', '--per-minute', '0'], 'not a whole number from 1 to 1000000'],
  [['clients', 'tag', 'a', '--scope', 'agent:read'], 'belong to limit'],
  [['clients', 'show', 'a', '--query', 'b'], 'belongs to list'],
  [['token', '--name', 'a'], 'belong to --long-lived'],
  [['token', '--long-lived', '--operator'], 'excludes'],
  [['token', '--long-lived', '--expires', '0d'], 'must be a duration'],
  [['token', '--long-lived', '--expires', '400d'], '--expires must be 1m to 365d, not "400d"'],
  [
    ['token', '--long-lived', '--admin', '--scope', 'agent:admin', '--expires', '91d'],
    '--expires must be 1m to 90d, not "91d"',
  ],
])('%j causes exit code 2 and a message', async (argv, message) => {
  const said = await cli(...argv)
  expect([said.code, said.stdout]).toEqual([2, ''])
  expect(said.stderr).toContain(message)
})

test.each([
  [['token', '--long-lived', '--name', 'a\u0007'], '--name: printable characters'],
  [['token', '--long-lived', '--scope', 'agent:fly!'], '--scope: scopes, separated by'],
  [['token', '--long-lived', '--resource', 'nowhere'], '--resource: must be an http'],
  [['clients', 'limit', 'a', '--resource', 'nowhere'], '--resource: must be an http'],
  [['clients', 'limit', 'a', '--scope', 'agent:fly!'], '--scope: scopes, separated by'],
  [['clients', 'tag', 'a', 'NOT a tag'], '<tags>: 1 to 64 lower-case'],
  [['clients', '--query', 'x'.repeat(300)], '--query: '],
])('%j is rejected by the gateway, and the error names the option', async (argv, message) => {
  const said = await cli(...argv)
  expect([said.code, said.stdout]).toEqual([1, ''])
  expect(said.stderr).toContain(` ${message}`)
})

test('with another OAuth server, the error message names the reason', async () => {
  const fault = { code: -32040, message: 'Not found', data: { reason: 'route' } }
  await using server = await scriptedAgent({ 'GET /clients': () => ({ status: 404, error: fault }) })
  const said = await runCli(['clients', '--url', server.url, '--token', 'operator'])
  expect(said).toMatchObject({ code: 1, stderr: expect.stringContaining('another OAuth server') })
})
