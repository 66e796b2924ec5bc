/**
 * The calculating process: one calculation after the other, each in its own message. It stands alone because some
 * calculations exhaust memory, which ends a process and not only a thread.
 */
import { evaluate } from './evaluate.ts'
import type { Calculation } from './outcome.ts'

process.on('message', ({ calculation, timeoutMs }: { calculation: Calculation; timeoutMs: number }) => {
  process.send?.(evaluate(calculation, timeoutMs))
})
process.on('disconnect', () => process.exit(0))
