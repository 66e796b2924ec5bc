import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    // e2e/ belongs to Playwright; dist/ is what `npm run pack` makes.
    exclude: ['**/node_modules/**', 'e2e/**', 'dist/**'],
    environment: 'node',
    // Processes, not threads: tests here send signals, open databases and start servers.
    pool: 'forks',
    // More than two cores' worth: many tests wait for a process, a timer or a database.
    maxWorkers: 3,
    // Bounds against hanging. No test asserts a time.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    setupFiles: ['shared/testing/block-outside-network.ts'],
  },
})
