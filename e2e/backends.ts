import { hasServers, startServers } from '@parley/tools/testing/agent-processes'
import { test as base } from '@playwright/test'
import type { Backends } from './harness/deployment.ts'

interface Options {
  /** The backends, set by the Playwright project. */
  store: Backends['kind']
}

/** Playwright's `test` with the project's backends. All files share the servers of `full`. */
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

/** Skips the file in the project `full` if the servers are not installed. Call this at the top of each file. */
export function skipWithoutServers(): void {
  test.skip(({ store }) => store === 'full' && !hasServers, '(needs mongod, redis-server)')
}
