import { defineConfig } from '@playwright/test'
import type { Options } from './e2e/standing.ts'

/** The whole house from outside. Each file starts its own house on free ports, in its own DATA_DIR, in both projects. */
export default defineConfig<object, Options>({
  testDir: 'e2e',
  testMatch: '**/*.{spec,test}.ts',
  // A house is several processes; two houses at once on two cores only make each other slow.
  workers: 1,
  retries: 0,
  forbidOnly: true,
  // Bounds against hanging, on a machine that does other things too.
  timeout: 240_000,
  expect: { timeout: 20_000 },
  outputDir: 'test-results',
  projects: [
    { name: 'embedded', use: { store: 'embedded' }, testIgnore: '**/several-processes.spec.ts' },
    // On MongoDB and Redis, several processes of each kind.
    { name: 'full', use: { store: 'full' } },
  ],
})
