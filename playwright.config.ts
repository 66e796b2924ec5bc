import { defineConfig } from '@playwright/test'

/** The whole house from outside. Each file starts its own house on free ports, in its own DATA_DIR. */
export default defineConfig({
  testDir: 'e2e',
  testMatch: '**/*.{spec,test}.ts',
  // A house is several processes; two houses at once on two cores only make each other slow.
  workers: 1,
  retries: 0,
  forbidOnly: true,
  timeout: 120_000,
  outputDir: 'test-results',
})
