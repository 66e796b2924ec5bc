import { setTimeout as wait } from 'node:timers/promises'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { startScriptedMcpServer } from '@parley/tools/testing/mcp-server'
import { expect, test } from 'vitest'
import { fetchMcpServer } from './fetch-mcp-server.ts'
import { GuardedClient } from './guarded-client.ts'

test('a server that sends its list of tools slowly, page by page, is refused after the time limit', async () => {
  let pages = 0
  await using server = await startScriptedMcpServer(async (_request, reply) => {
    await wait(20)
    pages += 1
    reply.result({ tools: [], nextCursor: String(pages) })
  })
  await using client = new GuardedClient({ allowed: parseAllowedHosts('127.0.0.1') })
  const reading = fetchMcpServer(server.url, { client, readMaxMs: 1000 })
  await expect(reading).rejects.toMatchObject({ data: { reason: 'mcp' } })
  expect(pages).toBeLessThan(100)
})
