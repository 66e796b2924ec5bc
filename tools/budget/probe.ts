/**
 * Preloaded into a server. At each SIGUSR2, it writes the heap size to `PROBE_FILE`, before and after a full garbage collection. Between two
 * signals there must be no other collection, so that the growth of the heap equals the allocations.
 */
import { renameSync, writeFileSync } from 'node:fs'
import { GCProfiler } from 'node:v8'

/** Written by the server at each signal. */
export interface Probe {
  /** Bytes of the heap and of buffers. */
  before: number
  after: number
  /** Collections since the last signal. */
  collections: number
}

const file = process.env['PROBE_FILE'] ?? ''
let profiler: GCProfiler | undefined

function bytes(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

process.on('SIGUSR2', () => {
  const before = bytes()
  const collections = profiler?.stop().statistics.length ?? 0
  globalThis.gc?.()
  profiler = new GCProfiler()
  profiler.start()
  const probe: Probe = { before, after: bytes(), collections }
  writeFileSync(`${file}.new`, JSON.stringify(probe))
  renameSync(`${file}.new`, file)
})
