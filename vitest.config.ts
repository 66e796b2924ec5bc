import path from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Files that take long though they are small: started last, they would run on alone while the other workers are idle. */
const longest = [
  'exchanges.test.ts',
  'chaos.test.ts',
  'failover.test.ts',
  'shared/engine/webhooks/several-processes.test.ts',
  'shared/engine/webhooks/crash.test.ts',
  'shared/agent/server/app-of-processes.test.ts',
  'gateway/replicas.test.ts',
  'shared/engine/tasks/crash.test.ts',
  'gateway/main.test.ts',
  'gateway/several-gateways.test.ts',
  'shared/engine/store/mongodb/store.test.ts',
  'gateway/supervisor/supervisor.test.ts',
]

/** Those first; the rest as vitest has it: by what they took the last time, else by size. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) => longest.some((name) => moduleId.endsWith(name))
    const sorted = await super.sort(files)
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

export default defineConfig({
  test: {
    include: ['**/*.test.ts'],
    // e2e/ belongs to Playwright; dist/ is what `npm run pack` makes.
    exclude: ['**/node_modules/**', 'e2e/**', 'dist/**'],
    environment: 'node',
    // Processes, not threads: tests here send signals, open databases and start servers.
    pool: 'forks',
    // A worker keeps the modules it has loaded for its next file: loading them anew took a third of the time.
    isolate: false,
    // More than two cores' worth: many wait for a process, a timer or a database.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // Bounds against hanging. No test asserts a time.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 100_000 } },
    execArgv: ['--import', path.join(import.meta.dirname, 'tools/testing/block-outside-network.ts')],
  },
})
