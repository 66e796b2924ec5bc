/**
 * Child process that runs one calculation per message. It is a process rather than a thread because a calculation that
 * exhausts memory terminates the whole process.
 */
import { evaluate } from './evaluate.ts'
import type { Calculation } from './outcome.ts'

process.on('message', ({ calculation, timeoutMs }: { calculation: Calculation; timeoutMs: number }) => {
  process.send?.(evaluate(calculation, timeoutMs))
})
process.on('disconnect', () => process.exit(0))
