import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { expect, test } from 'vitest'
import { HttpIntrospector } from './introspection.ts'

/** Nothing else of this process runs meanwhile. */
function holdUp(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until);
}

test('a process that was held up itself for longer than the limit still takes the answer', async () => {
  await using provider = await TestIdentityProvider.start()
  await using introspector = new HttpIntrospector({
    url: provider.url,
    clientId: 'gateway',
    clientSecret: 'secret',
    timeoutMs: 2000,
  })
  const ask = () => introspector.introspect(provider.issue('alice', { scope: 'agent:read' }))
  expect(await ask()).toMatchObject({ active: true })
  const asked = ask()
  setTimeout(() => holdUp(2300), 1)
  expect(await asked).toMatchObject({ active: true, client_id: 'alice' })
})
