import { readFileSync } from 'node:fs'
import path from 'node:path'
import { startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { readKeyRotation, readKeyStatus } from '@parley/wire/codecs/parley/keys'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const start = (dataDir: string, env: Record<string, string> = {}) =>
  startGatewayApp({
    settings: gatewayConfig({ DATA_DIR: dataDir, PORT: '0', ...env }),
    log: makeLog({ level: 'silent', name: 'test' }),
  })

const parley = async (cwd: string, argv: string[], env: Record<string, string> = {}) => {
  const { code, stdout, stderr } = await runCli(['keys', ...argv], { cwd, env: { DATA_DIR: 'data', ...env } })
  return { code, stdout, stderr }
}

async function tokenOf(dataDir: string, url: string, file: string): Promise<string> {
  const client: { client_id: string; client_secret: string } = JSON.parse(
    readFileSync(path.join(dataDir, file), 'utf8'),
  )
  const response = await fetch(`${url}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'client_credentials', ...client }),
  })
  const body: { access_token?: string } = JSON.parse(await response.text())
  return body.access_token ?? ''
}

test('before the first start there is nothing to show, and nothing is created', async () => {
  using folder = temporaryFolder()
  const { code, stderr } = await parley(folder.path, ['show'])
  expect([code, stderr]).toEqual([1, expect.stringContaining('the gateway creates it at its first start')])
  expect((await parley(folder.path, ['rotate', '--json'])).code).toBe(1)
  expect(() => readFileSync(path.join(folder.path, 'data', 'master.key'))).toThrow('ENOENT')
})

test.each([
  ['an unknown action', ['delete'], '"delete" is not one of show, rotate'],
  ['--master without rotate', ['show', '--master'], '--master needs the action rotate'],
])('%s is incorrect usage', async (_what, argv, said) => {
  using folder = temporaryFolder()
  const { code, stderr } = await parley(folder.path, argv)
  expect([code, stderr]).toEqual([2, expect.stringContaining(said)])
})

test('data key and master key are rotated while the gateway is stopped and while it runs', async () => {
  using folder = temporaryFolder()
  const dataDir = path.join(folder.path, 'data')
  const masterFile = path.join(dataDir, 'master.key')
  const secrets = () => [readFileSync(masterFile, 'utf8').trim()]
  const all: string[] = []
  const run = async (argv: string[], env: Record<string, string> = {}) => {
    const result = await parley(folder.path, argv, env)
    all.push(result.stdout, result.stderr)
    expect(result.code).toBe(0)
    return result.stdout
  }
  let token: string
  let origin: string
  {
    await using gateway = await start(dataDir)
    origin = gateway.addresses.public
    token = await tokenOf(dataDir, origin, 'dev-client.json')
  }
  const known = secrets()
  const first = readKeyStatus(JSON.parse(await run(['show', '--json'])))
  expect(first).toMatchObject({
    masterKey: { source: masterFile, replaces: [] },
    dataKeys: [{ current: true, records: expect.any(Number) }],
    otherRecords: 0,
    files: ['oauth-keys.json', 'statement-keys.json'],
  })
  expect(await run(['show'])).toContain(`master key ${first.masterKey.id} (${masterFile})\n`)
  const second = readKeyRotation(JSON.parse(await run(['rotate', '--json'])))
  expect(second).toMatchObject({ rotated: 'data', continued: false, unreadable: 0, steps: [] })
  expect(second.records).toBe(first.dataKeys[0]?.records)
  expect(second.records).toBeGreaterThan(2)
  expect(second.status.dataKeys).toHaveLength(1)
  expect(second.status.dataKeys[0]?.id).not.toBe(first.dataKeys[0]?.id)
  expect(await run(['rotate', '--master'])).toContain(`Back up ${masterFile} separately`)
  known.push(...secrets())
  const port = new URL(origin).port
  await using gateway = await start(dataDir, { PORT: port })
  const agents = () =>
    fetch(`${origin}/registry/agents?status=left`, { headers: { authorization: `Bearer ${token}` } })
  // The token is known, but it lacks the operator's scope.
  expect((await agents()).status).toBe(403)
  const env = { PORT: port }
  const third = readKeyRotation(JSON.parse(await run(['rotate', '--json'], env)))
  expect(third).toMatchObject({ rotated: 'data', continued: false, unreadable: 0 })
  const fourth = readKeyRotation(JSON.parse(await run(['rotate', '--master', '--json'], env)))
  expect(fourth.rotated).toBe('master')
  known.push(...secrets())
  expect(new Set(known).size).toBe(3)
  expect((await agents()).status).toBe(403)
  expect(await tokenOf(dataDir, origin, 'dev-client.json')).not.toBe('')
  expect(await run(['show'], env)).toContain(fourth.status.masterKey.id)
  await gateway[Symbol.asyncDispose]()
  await using again = await start(dataDir, { PORT: port })
  expect(again.addresses.public).toBe(origin)
  expect((await agents()).status).toBe(403)
  for (const secret of known) expect(all.join('')).not.toContain(secret)
})

test('only an operator may show and rotate the keys of a running gateway', async () => {
  using folder = temporaryFolder()
  const dataDir = path.join(folder.path, 'data')
  await using gateway = await start(dataDir)
  const url = gateway.addresses.public
  const token = await tokenOf(dataDir, url, 'dev-client.json')
  for (const argv of [['show'], ['rotate'], ['rotate', '--master']]) {
    const { code, stderr } = await parley(folder.path, [...argv, '--json', '--url', url, '--token', token])
    expect([code, stderr]).toEqual([1, expect.stringContaining('-32013')])
  }
  expect((await fetch(`${url}/keys`)).status).toBe(401)
})

test('the steps to replace PARLEY_MASTER_KEY are printed, and then followed', async () => {
  using folder = temporaryFolder()
  const dataDir = path.join(folder.path, 'data')
  const [one, two] = [1, 2].map((fill) => Buffer.alloc(32, fill).toString('base64'))
  const before = { PARLEY_MASTER_KEY: one ?? '' }
  const both = { PARLEY_MASTER_KEY: two ?? '', PARLEY_MASTER_KEY_PREVIOUS: one ?? '' }
  const after = { PARLEY_MASTER_KEY: two ?? '' }
  {
    await using gateway = await start(dataDir, before)
    const env = { ...before, PORT: new URL(gateway.addresses.public).port }
    const { code, stdout } = await parley(folder.path, ['rotate', '--master'], env)
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^Nothing was changed.*:\n1\. .*\n2\. For every/),
    ])
  }
  {
    await using gateway = await start(dataDir, both)
    expect(await tokenOf(dataDir, gateway.addresses.public, 'dev-client.json')).not.toBe('')
  }
  const steps = await parley(folder.path, ['rotate', '--master'], both)
  expect([steps.code, steps.stdout]).toEqual([0, expect.stringContaining('The master key was replaced.')])
  const again = await parley(folder.path, ['rotate', '--master'], after)
  expect(again.stdout).toMatch(/^Nothing was changed.*:\n1\. .*openssl rand -base64 32\n2\. /)
  const refused = await parley(folder.path, ['show'], before)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('Nothing was changed')])
  const invalid = await parley(folder.path, ['show'], { PARLEY_MASTER_KEY: 'SEKRET' })
  expect([invalid.code, invalid.stderr]).toEqual([
    1,
    expect.stringContaining('PARLEY_MASTER_KEY must be base64'),
  ])
  expect(invalid.stderr).not.toContain('SEKRET')
  await using gateway = await start(dataDir, after)
  expect(await tokenOf(dataDir, gateway.addresses.public, 'dev-client.json')).not.toBe('')
})
