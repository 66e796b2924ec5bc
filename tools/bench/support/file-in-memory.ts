import { spawnSync } from 'node:child_process'

/**
 * Loads a file into the page cache, as far as it fits. The system may evict a file even without memory pressure, and
 * one percent of missing pages affects every figure, because reading a page from the disk takes fifty times as long as
 * from memory. Another process reads the file, because closing a file drops the process's locks on it.
 */
export function bringIntoMemory(file: string): void {
  const { status } = spawnSync('cat', [file], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${file} was not read`)
}

/** Evicts a file from the page cache. Returns false if `dd` is not the GNU version. */
export function dropFromMemory(file: string): boolean {
  // Writes the file to the disk first, because dirty pages cannot be evicted.
  const synced = spawnSync('sync', [file]).status === 0
  return synced && spawnSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']).status === 0
}

/** Bytes that this process has read from the disk. */
export const bytesFromDisk = () => process.resourceUsage().fsRead * 512
