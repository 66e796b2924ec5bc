import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** After the first collection, smaller heaps are not collected. */
const minHeapBytes = 80 * 1024 * 1024

/**
 * Releases unused memory when the process becomes idle. V8 keeps its peak heap until the next collection, and on a
 * machine with many agents most are idle. It collects once after the start, which leaves a third of the memory unused, and
 * then whenever the counter `completed()` has stopped and the heap has grown.
 * @param intervalMs interval of the checks, in milliseconds
 */
export function releaseIdleMemory(completed: () => number, intervalMs = 2000): Disposable {
  let previous = completed()
  let collectedAt: number | undefined
  const timer = setInterval(() => {
    const now = completed()
    const idle = now === previous
    previous = now
    if (!idle || collectedAt === now) return
    if (collectedAt !== undefined && getHeapStatistics().total_heap_size < minHeapBytes) return
    collectedAt = now
    collect()
  }, intervalMs)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

type Collect = (options: { type: 'major'; execution: 'async'; flavor: 'last-resort' }) => unknown

/** Exposes V8's garbage collector without a command line flag. `last-resort` returns free pages to the system. */
function collect(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as Collect
  gc({ type: 'major', execution: 'async', flavor: 'last-resort' })
}
