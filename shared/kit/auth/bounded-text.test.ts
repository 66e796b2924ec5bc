import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { boundedText } from '../net/bounded-text.ts'
import { ClientToken } from './client-token.ts'
import { discover } from './discovery.ts'

test('a body whose size equals the limit is read completely across chunk boundaries', async () => {
  async function* halves() {
    yield Buffer.from('€').subarray(0, 1)
    yield Buffer.from('€').subarray(1)
  }
  expect(await boundedText(halves(), 3)).toBe('€')
  await expect(boundedText(halves(), 2)).rejects.toThrow('larger than')
})

test('reading stops when a body exceeds the limit', async () => {
  let read = 0
  async function* endless() {
    for (;;) {
      read += 1
      yield new Uint8Array(1000)
    }
  }
  await expect(boundedText(endless(), 3500)).rejects.toThrow('larger than')
  expect(read).toBe(4)
})

const huge = () => ({ status: 200, type: 'application/json', body: `"${'x'.repeat(70_000)}"` })

test('metadata and token responses that exceed the limit are rejected', async () => {
  await using server = await scriptedAgent({
    'GET /.well-known/oauth-authorization-server': huge,
    'GET /.well-known/openid-configuration': huge,
    'POST /token': huge,
  })
  const failure = await discover(server.url).catch((error: Error) => error.cause)
  expect(String(failure)).toContain('larger than')
  const client = { clientId: 'a', clientSecret: 'b', scope: 'agent:read' }
  await expect(new ClientToken({ ...client, tokenUrl: `${server.url}/token` }).get()).rejects.toThrow(
    'larger than',
  )
})
