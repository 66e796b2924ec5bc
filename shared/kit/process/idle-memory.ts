import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** A smaller heap is left alone. */
const worthBytes = 80 * 1024 * 1024

/**
 * Gives memory back after work: V8 keeps the heap of its busiest hour until it needs to collect again, and a machine runs
 * many agents of which few are busy. Collects once when `worked()` stands still and the heap has grown.
 * @param lookEveryMs how often it looks, in milliseconds
 */
export function giveBackIdleMemory(worked: () => number, lookEveryMs = 2000): Disposable {
  let seen = worked()
  let collectedAt = seen
  const timer = setInterval(() => {
    const now = worked()
    const idle = now === seen
    seen = now
    if (!idle || collectedAt === now || getHeapStatistics().total_heap_size < worthBytes) return
    collectedAt = now
    collect()
  }, lookEveryMs)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => unknown

/** V8's own, which no flag of the command line need expose. `last-resort` returns free pages to the system. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as Collect
  gc({ type: 'major', execution: 'async', flavor: 'last-resort' })
}
