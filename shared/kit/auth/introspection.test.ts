import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { expect, test } from 'vitest'
import { HttpIntrospector } from './introspection.ts'

/** Blocks the event loop. */
function blockEventLoop(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('a response is still accepted after the event loop was blocked for longer than the limit', async () => {
  await using provider = await TestIdentityProvider.start()
  await using introspector = new HttpIntrospector({
    url: provider.url,
    clientId: 'gateway',
    clientSecret: 'secret',
    timeoutMs: 2000,
  })
  const introspect = () => introspector.introspect(provider.issue('alice', { scope: 'agent:read' }))
  expect(await introspect()).toMatchObject({ active: true })
  const introspecting = introspect()
  setTimeout(() => blockEventLoop(2300), 1)
  expect(await introspecting).toMatchObject({ active: true, client_id: 'alice' })
})
