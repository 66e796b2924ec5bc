/** The process of the relay, which the supervisor starts: `node relay-process.ts`. */
import { guardSqlite } from '@parley/agent/internal/server/sqlite/guard'

/** Longer than a graceful stop. */
const orphanLimitMs = 35_000

// The relay must not outlive its supervisor. `runRelay` stops when the channel closes; this timer ends it if it hangs.
process.once('disconnect', () => setTimeout(() => process.exit(1), orphanLimitMs).unref())
guardSqlite()
// Imported now, because it imports `node:sqlite`.
const { runRelay } = await import('./run-relay.ts')
process.exitCode = await runRelay()
if (process.connected) process.disconnect()
setTimeout(() => process.exit(), 1000).unref()
