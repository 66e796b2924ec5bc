import { hasServers, startServers } from '@parley/tools/testing/agent-processes'
import { test as base } from '@playwright/test'
import type { Backends } from './harness/deployment.ts'

interface Options {
  /** Set by the project. */
  store: Backends['kind']
}

/** Playwright's `test`, with the backends of the project. All files share the servers of `full`. */
export const test = base.extend<object, Options & { backends: Backends }>({
  store: ['embedded', { option: true, scope: 'worker' }],
  backends: [
    async ({ store }, use) => {
      if (store === 'embedded') return use({ kind: store, newStore: () => ({}) })
      await using servers = await startServers()
      const { mongodb, redis } = servers
      await use({ kind: store, newStore: () => ({ STORE_URL: mongodb.newUrl(), REDIS_URL: redis.url }) })
    },
    { scope: 'worker', timeout: 180_000 },
  ],
})

/** Call it at the top of each file: in the project `full`, skips the file when the servers are not installed. */
export function skipWithoutServers(): void {
  test.skip(({ store }) => store === 'full' && !hasServers, '(needs mongod, redis-server)')
}
