import path from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Small but slow test files. If they started last, the other workers would be idle while they run. */
const longest = [
  'gateway/isolation/isolation.test.ts',
  'mcp/conformance.test.ts',
  'clients/clients.test.ts',
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

/** Runs the slow files first, and sorts the others as vitest does: by their last duration, or by size. */
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
    // Playwright runs the tests in e2e/. `npm run pack` writes dist/.
    exclude: ['**/node_modules/**', 'e2e/**', 'dist/**'],
    environment: 'node',
    // Only tests of the encoder load its model, which takes time and memory in every process.
    env: { SENTENCE_ENCODER: 'no' },
    // Tests run in processes rather than threads because they send signals, open databases and start servers.
    pool: 'forks',
    // A worker keeps its loaded modules for the next file. Loading them again would take a third of the time.
    isolate: false,
    // More workers than cores, because many tests wait for a process, a timer or a database.
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
    // These limits end hanging tests. No test depends on them.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 100_000 } },
    execArgv: ['--import', path.join(import.meta.dirname, 'tools/testing/block-outside-network.ts')],
  },
})
