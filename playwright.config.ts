import { defineConfig } from '@playwright/test'

/** The whole house from outside. Each file starts its own house on free ports, in its own DATA_DIR, in both projects. */
export default defineConfig<object, { store: 'embedded' | 'full' }>({
  testDir: 'e2e',
  testMatch: '**/*.{spec,test}.ts',
  // Mostly one command waits for one process: three houses at a time keep two cores busy.
  workers: 3,
  retries: 0,
  forbidOnly: true,
  // Bounds against hanging, on a machine that does other things too.
  timeout: 240_000,
  expect: { timeout: 100_000, toPass: { timeout: 100_000 } },
  outputDir: 'test-results',
  projects: [
    { name: 'embedded', use: { store: 'embedded' }, workers: 1, testIgnore: '**/several-processes.spec.ts' },
    // On MongoDB and Redis, several processes of each kind.
    { name: 'full', use: { store: 'full' }, workers: 2 },
  ],
})
