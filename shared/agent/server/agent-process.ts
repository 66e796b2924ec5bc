/** What the supervisor runs, one process for each agent: `node agent-process.ts <folder>`. */
import { runAgent } from './run-agent.ts'

/** Longer than a clean stop takes. */
const orphanLimitMs = 35_000

// No agent outlives its supervisor: `runAgent` stops when the channel closes; this is for one that cannot stop.
process.once('disconnect', () => setTimeout(() => process.exit(1), orphanLimitMs).unref())
process.exitCode = await runAgent(process.argv[2] ?? '.')
// The channel would keep the process, and so would whatever a handler forgot to close.
if (process.connected) process.disconnect()
setTimeout(() => process.exit(), 1000).unref()
