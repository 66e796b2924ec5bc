import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { type ScriptedCall, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const issued = {
  access_token: 'the-token',
  token_type: 'Bearer',
  expires_in: 3600,
  scope: 'agent:read agent:write',
}
const issue = () => ({ status: 200, type: 'application/json', body: JSON.stringify(issued) })

function writeClient(folder: string, url: string): void {
  mkdirSync(path.join(folder, '.parley'))
  const client = { client_id: 'dev', client_secret: 'hidden-secret', token_url: `${url}/oauth2/token` }
  writeFileSync(path.join(folder, '.parley', 'dev-client.json'), JSON.stringify(client), { mode: 0o600 })
}

test('token prints a token that the development client got with client credentials', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'POST /oauth2/token': issue })
  writeClient(folder.path, server.url)
  expect(await runCli(['token'], { cwd: folder.path })).toEqual({
    code: 0,
    stdout: 'the-token\n',
    stderr: '',
  })
  expect(server.calls[0]?.params).toEqual({
    grant_type: 'client_credentials',
    client_id: 'dev',
    client_secret: 'hidden-secret',
    scope: 'agent:read agent:write',
  })
})

test('--scope requests the given scopes, and --json prints the complete response', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'POST /oauth2/token': issue })
  writeClient(folder.path, server.url)
  const said = await runCli(['token', '--scope', 'agent:read', '--json'], { cwd: folder.path })
  expect(JSON.parse(said.stdout)).toEqual(issued)
  expect(server.calls[0]?.params.scope).toBe('agent:read')
})

test.each([
  ['--initial', 'the initial access token for client registration', 'initial-access-token'],
  ['--sign-in-code', 'the code for the approval page', 'sign-in-code'],
])('%s prints %s', async (flag, _what, name) => {
  using folder = temporaryFolder()
  const file = path.join(folder.path, 'data', 'oauth', name)
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, 'secret-text\n', { mode: 0o600 })
  const given = { cwd: folder.path, env: { DATA_DIR: 'data' } }
  expect(await runCli(['token', flag], given)).toEqual({
    code: 0,
    stdout: 'secret-text\n',
    stderr: '',
  })
})

test.each([
  ['no client file', undefined, /holds no dev-client\.json/],
  ['a file that is not JSON', '{"client_secret": "hidden-secret', /is not a client file/],
  ['a file of something else', '{"client_secret": "hidden-secret"}', /is not a client file/],
])('%s causes exit code 1 and a message without the secret', async (_, content, text) => {
  using folder = temporaryFolder()
  if (content !== undefined)
    writeFileSync(path.join(folder.path, 'dev-client.json'), content, { mode: 0o600 })
  const said = await runCli(['token'], { cwd: folder.path, env: { DATA_DIR: '.' } })
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toMatch(text)
  expect(said.stderr).not.toContain('hidden-secret')
})

test.each([
  ['dev-client.json', []],
  ['oauth/operator-client.json', ['--operator']],
  ['oauth/initial-access-token', ['--initial']],
  ['oauth/sign-in-code', ['--sign-in-code']],
])('%s causes exit code 1 and a chmod command if others may read it', async (name, flags) => {
  using folder = temporaryFolder()
  mkdirSync(path.join(folder.path, 'oauth'))
  const file = path.join(folder.path, name)
  writeFileSync(file, 'hidden-secret')
  chmodSync(file, 0o644)
  const said = await runCli(['token', ...flags], { cwd: folder.path, env: { DATA_DIR: folder.path } })
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toContain(`Run "chmod 600 ${file}"`)
  expect(said.stderr).not.toContain('hidden-secret')
})

test('a missing initial access token causes exit code 1 and a hint about when it is created', async () => {
  using folder = temporaryFolder()
  const said = await runCli(['token', '--initial'], { cwd: folder.path })
  expect(said.code).toBe(1)
  expect(said.stderr).toContain('the server writes it at its first start')
})

test('token reports an error from the token server without the secret', async () => {
  using folder = temporaryFolder()
  const refusal = { error: 'invalid_scope', error_description: 'scope not allowed' }
  await using server = await scriptedAgent({
    'POST /oauth2/token': () => ({ status: 400, type: 'application/json', body: JSON.stringify(refusal) }),
  })
  writeClient(folder.path, server.url)
  const said = await runCli(['token', '--scope', 'agent:admin'], { cwd: folder.path })
  expect(said).toMatchObject({
    code: 1,
    stderr: 'parley: The token server refused: invalid_scope scope not allowed\n',
  })
})

test.each([
  ['agent:fly', '', 1, 'parley: The token server grants no scope of "agent:fly".\n'],
  ['agent:read agent:fly', 'agent:read', 0, 'The token server did not grant agent:fly.\n'],
])('a scope that the server omits is reported (%s)', async (scope, granted, code, stderr) => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({
    'POST /oauth2/token': () => ({ ...issue(), body: JSON.stringify({ ...issued, scope: granted }) }),
  })
  writeClient(folder.path, server.url)
  expect(await runCli(['token', '--scope', scope], { cwd: folder.path })).toMatchObject({ code, stderr })
})

test('commands use one token of the development client, which is fetched once', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({
    'POST /oauth2/token': issue,
    'GET /registry/agents': () => ({ result: 0 }),
  })
  writeClient(folder.path, server.url)
  await runCli(['agents', '--url', server.url], { cwd: folder.path })
  const authorization = ({ headers }: ScriptedCall) => headers.authorization
  expect(server.calls.map(authorization)).toEqual([undefined, 'Bearer the-token'])
})

test('tokens of the development client are sent only to its own host', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'POST /oauth2/token': issue })
  writeClient(folder.path, 'http://oauth.example')
  const said = await runCli(['send', 'greeter', 'hi', '--url', server.url], { cwd: folder.path })
  expect(said.code).toBe(1)
  expect(server.calls.map(({ method, headers }) => [method, headers.authorization])).toEqual([
    ['message/stream', undefined],
  ])
})

test.each([
  ['another port of the same machine', (url: string) => url.replace(/\d+$/, '1')],
  ['another scheme', (url: string) => url.replace('http:', 'https:')],
])('tokens of the development client are not sent to %s', async (_what, other) => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'POST /oauth2/token': issue })
  writeClient(folder.path, other(server.url))
  await runCli(['send', 'greeter', 'hi', '--url', server.url], { cwd: folder.path })
  expect(server.calls.map(({ headers }) => headers.authorization)).toEqual([undefined])
})

test('all loopback names count as one host', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({
    'POST /oauth2/token': issue,
    'GET /registry/agents': () => ({ result: 0 }),
  })
  writeClient(folder.path, server.url)
  const url = server.url.replace('127.0.0.1', 'localhost')
  await runCli(['agents', '--url', url], { cwd: folder.path })
  expect(server.calls.at(-1)?.headers.authorization).toBe('Bearer the-token')
})

test('check sends --token, but never PARLEY_TOKEN, to the address on the command line', async () => {
  using folder = temporaryFolder()
  const card = () => ({ status: 200, type: 'application/json', body: '{}' })
  await using server = await scriptedAgent({ 'GET /.well-known/agent.json': card })
  const given = { cwd: folder.path, env: { PARLEY_TOKEN: 'of-the-environment' } }
  await runCli(['check', server.url], given)
  expect(server.calls.filter(({ headers }) => headers.authorization !== undefined)).toEqual([])
  await runCli(['check', server.url, '--token', 'typed'], given)
  expect(server.calls.map(({ headers }) => headers.authorization)).toContain('Bearer typed')
})

test('the environment overrides the .env of the working folder, and --token overrides both', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'GET /registry/agents': () => ({ result: 0 }) })
  writeFileSync(path.join(folder.path, '.env'), `PUBLIC_URL=${server.url}/\nPARLEY_TOKEN=of-the-file\n`)
  await runCli(['agents'], { cwd: folder.path })
  await runCli(['agents'], { cwd: folder.path, env: { PARLEY_TOKEN: 'of-the-environment' } })
  await runCli(['agents', '--token', 'typed'], { cwd: folder.path })
  expect(server.calls.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer of-the-file',
    'Bearer of-the-environment',
    'Bearer typed',
  ])
})

test('token reports each invalid setting in one sentence', async () => {
  const said = await runCli(['agents'], { env: { PORT: 'seven', PUBLIC_URL: 'nowhere' } })
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toContain('PORT must be a port number.')
  expect(said.stderr).toContain('PUBLIC_URL must be an http or https URL.')
})
