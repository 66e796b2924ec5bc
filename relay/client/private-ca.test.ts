import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { selfSigned } from '@parley/tools/testing/certificate'
import { afterAll, beforeAll, expect, test } from 'vitest'

const certificate = selfSigned(['127.0.0.1'])
const server = createServer(certificate, (request, response) => void answer(request, response))
const answer = async (request: IncomingMessage, response: ServerResponse) => {
  const { id } = JSON.parse(await text(request))
  const task = { id: 't-1', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } }
  response.end(JSON.stringify({ jsonrpc: '2.0', id, result: task }))
}
let folder: string

beforeAll(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'relay-ca-'))
  await writeFile(path.join(folder, 'ca.pem'), certificate.cert)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(async () => {
  server.close()
  await rm(folder, { recursive: true, force: true })
})

test('an agent with a certificate of a private authority is reached with NODE_EXTRA_CA_CERTS only', async () => {
  expect(await read({})).toContain('The TLS handshake with the host failed')
  expect(await read({ NODE_EXTRA_CA_CERTS: path.join(folder, 'ca.pem') })).toBe('t-1')
})

/** Reads a task in another process, because the variable takes effect at the start of a process. */
async function read(env: Record<string, string>): Promise<string> {
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const code = `
    import { A2aClient } from '${import.meta.resolve('./a2a-client.ts')}'
    import { parseAllowedHosts } from '${import.meta.resolve('@parley/kit/net/allowed-hosts')}'
    import { dialectNamed } from '${import.meta.resolve('@parley/wire/codecs/dialects')}'
    const client = new A2aClient({
      url: 'https://127.0.0.1:${port}/', dialect: dialectNamed('a2a-v1'), streaming: false,
      allowed: parseAllowedHosts('127.0.0.1'), limits: { repeatDelayMs: 1 },
    })
    const read = client.get('t-1', AbortSignal.timeout(20000))
    console.log(await read.then(({ id }) => id, (error) => error.message))
    process.exit()`
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  return (await text(child.stdout)).trim()
}
