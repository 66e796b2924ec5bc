/** The process of a supervised agent with a manifest: `node manifest-process.ts <folder>`. */
import { guardSqlite } from '@parley/agent/internal/server/sqlite/guard'

/** Longer than a graceful stop. */
const orphanLimitMs = 35_000

// An agent must not outlive its supervisor. `runAgent` stops when the channel closes; this timer ends it if it hangs.
process.once('disconnect', () => setTimeout(() => process.exit(1), orphanLimitMs).unref())
guardSqlite()
// Imported now, because they import `node:sqlite`.
const { runAgent } = await import('@parley/agent/internal/server/run-agent')
const { loadManifestAgent } = await import('./manifest/manifest-agent.ts')
process.exitCode = await runAgent(process.argv[2] ?? '.', loadManifestAgent)
if (process.connected) process.disconnect()
setTimeout(() => process.exit(), 1000).unref()
