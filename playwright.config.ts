import { defineConfig } from '@playwright/test'

/** The end-to-end tests. In both projects, each file starts a deployment on free ports with its own DATA_DIR. */
export default defineConfig<object, { store: 'embedded' | 'full' }>({
  testDir: 'e2e',
  testMatch: '**/*.{spec,test}.ts',
  // Two parallel deployments of a dozen processes each keep two cores busy. With three, responses miss their time limits.
  workers: 2,
  retries: 0,
  forbidOnly: true,
  // These limits end hanging tests, and are generous for a machine under load.
  timeout: 240_000,
  expect: { timeout: 100_000, toPass: { timeout: 100_000 } },
  outputDir: 'test-results',
  projects: [
    // Some tests need several gateways.
    {
      name: 'embedded',
      use: { store: 'embedded' },
      workers: 1,
      testIgnore: ['**/several-processes.spec.ts', '**/foreign-agent.spec.ts'],
    },
    // Uses MongoDB and Redis, with several processes of each kind.
    // The hostile agents always run on the embedded store.
    {
      name: 'full',
      use: { store: 'full' },
      workers: 2,
      testIgnore: ['**/hostile-agent.spec.ts', '**/interfaces.spec.ts'],
    },
  ],
})
