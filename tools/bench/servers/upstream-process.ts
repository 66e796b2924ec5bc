/** A minimal agent: answers JSON-RPC with a prepared task. */
import { createServer } from 'node:http'
import { newId } from '@parley/kit/database/new-id'
import { tellAddress } from '../support/tell-address.ts'

const task = (id: string) => ({
  id,
  context_id: newId(),
  kind: 'task',
  status: { state: 'submitted', timestamp: '2026-01-01T00:00:00.000000+00:00' },
  history: [{ role: 'user', kind: 'message', parts: [{ kind: 'text', text: 'x'.repeat(400) }] }],
  artifacts: [],
})

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks).toString()
    const known = /"task_id":"([^"]+)"/.exec(body)?.[1]
    const result = JSON.stringify({ jsonrpc: '2.0', id: '1', result: task(known ?? newId()) })
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(result),
    }
    response.writeHead(200, headers).end(result)
  })
})
server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => tellAddress(server))
process.on('SIGTERM', () => process.exit(0))
