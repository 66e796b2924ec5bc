/** The process of a supervised agent: `node agent-process.ts <folder>`. */
import { guardSqlite } from './sqlite/guard.ts'

/** Longer than a graceful stop. */
const orphanLimitMs = 35_000

// An agent must not outlive its supervisor. `runAgent` stops when the channel closes; this timer ends it if it hangs.
process.once('disconnect', () => setTimeout(() => process.exit(1), orphanLimitMs).unref())
guardSqlite()
// Imported now, because it imports `node:sqlite`.
const { runAgent } = await import('./run-agent.ts')
process.exitCode = await runAgent(process.argv[2] ?? '.')
// The channel or a resource that a handler did not close would keep the process running.
if (process.connected) process.disconnect()
setTimeout(() => process.exit(), 1000).unref()
