import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

test('parley verify --card verifies the card of an agent with its DID document', async () => {
  await using agent = await testAgent({ handle: () => 'done' }, { store: 'memory' })
  const verified = await runCli(['verify', '--card', agent.url])
  expect(verified).toMatchObject({ code: 0, stderr: '' })
  expect(verified.stdout).toContain(`signed   ${agent.did}#key-1`)
  expect(verified.stdout).toMatch(/^covers {3}every field$/m)
  const path = '/a2a/v1/.well-known/agent-card.json'
  const json = await runCli(['verify', '--card', agent.url + path, '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject({ url: agent.url + path, covers: 'card' })

  // Another server shows a copy, with and without a change.
  const card = await (await fetch(agent.url + path)).text()
  let shown = card
  const server = http.createServer((request, response) => {
    if (!request.url?.startsWith('/did/')) response.end(shown)
    else void fetch(agent.url + request.url).then(async (answer) => response.end(await answer.text()))
  })
  server.listen(0, '127.0.0.1')
  try {
    await new Promise((resolve) => server.once('listening', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const copied = await runCli(['verify', '--card', url])
    expect(copied.code).toBe(1)
    expect(copied.stdout).toMatch(/^NO .* lists no interface at/m)
    shown = card.replace('The skill under test', 'Another skill')
    const changed = await runCli(['verify', '--card', url])
    expect(changed.stdout).toMatch(/^NO .*differs from the one that was signed/m)
    const original = { sha256: 'abc', signature: { verified: false, reason: 'un\u001b[2Jsigned' } }
    const params = { gateway: null, did: null, verified: false, original }
    const extension = { uri: 'urn:parley:a2a:vouched-card:v1', params }
    shown = JSON.stringify({ name: 'x', capabilities: { extensions: [extension] } })
    const vouched = await runCli(['verify', '--card', url])
    expect(vouched.stdout).toMatch(
      /^gateway {2}no identity, .*\nagent {4}no DID, not verified by the gateway$/m,
    )
    expect(vouched.stdout).toMatch(/^original SHA-256 abc, without a valid signature \(unsigned\)$/m)
    shown = '[]'
    expect(await runCli(['verify', '--card', url])).toMatchObject({ code: 1, stdout: '' })
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test.each([
  ['verify', '--card', 'ftp://x'],
  ['verify', '--card', 'http://127.0.0.1:1', '--agent', 'x'],
])('incorrect usage of %s %s %s causes exit code 2', async (...argv) => {
  expect(await runCli(argv)).toMatchObject({ code: 2, stdout: '' })
})
