import { hasServers, startServers } from '@parley/tools/testing/agent-processes'
import { test as base } from '@playwright/test'

/** What the houses of a project stand on. */
export interface Standing {
  /** `full`: MongoDB and Redis, several processes of each kind. */
  kind: 'embedded' | 'full'
  /** Settings of one house: in `full` a database of its own, and the Redis that all share. */
  newStore(): Record<string, string>
}

interface Options {
  /** Set by the project. */
  store: Standing['kind']
}

/** Playwright's `test`, with what the project stands on. The servers of `full` are started once for all its files. */
export const test = base.extend<object, Options & { standing: Standing }>({
  store: ['embedded', { option: true, scope: 'worker' }],
  standing: [
    async ({ store }, use) => {
      if (store === 'embedded') return use({ kind: store, newStore: () => ({}) })
      await using servers = await startServers()
      const { mongodb, redis } = servers
      await use({ kind: store, newStore: () => ({ STORE_URL: mongodb.newUrl(), REDIS_URL: redis.url }) })
    },
    { scope: 'worker', timeout: 180_000 },
  ],
})

/** To be called at the top of each file: skips it in the project `full` where its servers are missing. */
export function skippedWithoutServers(): void {
  test.skip(({ store }) => store === 'full' && !hasServers, '(needs mongod, redis-server)')
}
