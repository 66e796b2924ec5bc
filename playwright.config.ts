import { defineConfig } from '@playwright/test'

/** End-to-end tests. Each file starts its own deployment on free ports, with its own DATA_DIR, in both projects. */
export default defineConfig<object, { store: 'embedded' | 'full' }>({
  testDir: 'e2e',
  testMatch: '**/*.{spec,test}.ts',
  // Tests mostly wait for processes: three deployments at a time keep two cores busy.
  workers: 3,
  retries: 0,
  forbidOnly: true,
  // Limits for hanging tests, with room for a machine under load.
  timeout: 240_000,
  expect: { timeout: 100_000, toPass: { timeout: 100_000 } },
  outputDir: 'test-results',
  projects: [
    { name: 'embedded', use: { store: 'embedded' }, workers: 1, testIgnore: '**/several-processes.spec.ts' },
    // On MongoDB and Redis, several processes of each kind.
    { name: 'full', use: { store: 'full' }, workers: 2 },
  ],
})
