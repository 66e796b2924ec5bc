import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../testing.ts'

const library = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href

function addAgent(folder: string, name: string): void {
  mkdirSync(path.join(folder, 'agents', name), { recursive: true })
  writeFileSync(
    path.join(folder, 'agents', name, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(library)}
     const skill = { id: 'greet', name: 'Greet', description: 'Greets' }
     export default defineAgent({ name: '${name}', description: 'Greets', skills: [skill], handle: () => 'hello' })`,
  )
}

/** Runs `parley agent` without an OAuth server: it creates its key, then exits. */
async function runAgent(folder: string, name: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [path.resolve('cli/bin.mjs'), 'agent', `agents/${name}`], {
    cwd: folder,
    env: { PATH: process.env['PATH'], PORT: '0', ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number]>])
  return { code, stderr }
}

const keyOf = (...names: string[]) => readFileSync(path.join(...names, 'agent.key.json'), 'utf8')

test('two agents in one folder have separate identities, which are stored where parley up stores them', async () => {
  using folder = temporaryFolder()
  for (const name of ['hello', 'other']) {
    addAgent(folder.path, name)
    await runAgent(folder.path, name)
  }
  const data = path.join(folder.path, '.parley')
  expect(keyOf(data, 'agents', 'hello')).not.toBe(keyOf(data, 'agents', 'other'))
  expect(existsSync(path.join(data, 'agent.key.json'))).toBe(false)
  const before = keyOf(data, 'agents', 'hello')
  await runAgent(folder.path, 'hello')
  expect(keyOf(data, 'agents', 'hello')).toBe(before)
})

test('an agent in a CommonJS package causes exit code 1 and an explanation of how to load it', async () => {
  using folder = temporaryFolder()
  addAgent(folder.path, 'hello')
  const manifest = path.join(folder.path, 'package.json')
  writeFileSync(manifest, '{"type": "commonjs"}')
  const { code, stderr } = await runAgent(folder.path, 'hello')
  expect(code).toBe(1)
  expect(stderr).toContain(`parley: ${path.join(folder.path, 'agents', 'hello', 'agent.js')} `)
  expect(stderr).toContain(`Set "type": "module" in ${manifest}`)
  expect(stderr).not.toContain('    at ')
})

test('a key that an earlier version stored directly in DATA_DIR remains the identity of its agent', async () => {
  using folder = temporaryFolder()
  addAgent(folder.path, 'hello')
  const first = path.join(folder.path, 'first')
  await runAgent(folder.path, 'hello', { DATA_DIR: first })
  const data = path.join(folder.path, '.parley')
  mkdirSync(data)
  writeFileSync(path.join(data, 'agent.key.json'), keyOf(first, 'agents', 'hello'), { mode: 0o600 })
  const { stderr } = await runAgent(folder.path, 'hello')
  expect(stderr).toContain('agent.key.json')
  expect(existsSync(path.join(data, 'agents', 'hello'))).toBe(false)
})

test('the error asks for GATEWAY_URL if it is missing', async () => {
  using folder = temporaryFolder()
  addAgent(folder.path, 'hello')
  const { code, stderr } = await runAgent(folder.path, 'hello')
  expect(code).toBe(1)
  expect(stderr).toMatch(/^parley: Set GATEWAY_URL to the address of the gateway .*\n$/)
})

test('an unreachable gateway or a TLS failure is reported in one sentence without a stack', async () => {
  using folder = temporaryFolder()
  addAgent(folder.path, 'hello')
  const server = http.createServer((_, response) => response.writeHead(404).end())
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const start = (url: string) =>
    runAgent(folder.path, 'hello', { GATEWAY_URL: url, OAUTH_INITIAL_TOKEN: 'x' })
  const tls = await start(`https://127.0.0.1:${port}`)
  const strange = await start(`http://127.0.0.1:${port}`)
  await new Promise((done) => server.close(done))
  const away = await start(`http://127.0.0.1:${port}`)
  expect(tls.stderr).toMatch(/^parley: .*does not use TLS.*GATEWAY_URL.*\n$/)
  expect(strange.stderr).toMatch(/^parley: .*returned 404.*GATEWAY_URL.*\n$/)
  expect(away.stderr).toMatch(/^parley: .*nothing is listening at this address.*GATEWAY_URL.*\n$/)
})
