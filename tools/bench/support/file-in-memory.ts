import { spawnSync } from 'node:child_process'

/**
 * Loads a file into the page cache, as far as it fits. The system can evict a file without memory pressure, and one
 * percent of missing pages shows in every figure: a page from the disk costs fifty times one from memory. Another
 * process reads it: closing a file drops the process's locks on it, including those of its database.
 */
export function bringIntoMemory(file: string): void {
  const { status } = spawnSync('cat', [file], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${file} was not read`)
}

/** Evicts a file from the page cache. False when `dd` is not GNU's. */
export function dropFromMemory(file: string): boolean {
  // Writes it to the disk first: dirty pages cannot be evicted.
  const synced = spawnSync('sync', [file]).status === 0
  return synced && spawnSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']).status === 0
}

/** Bytes that this process has read from the disk. */
export const bytesFromDisk = () => process.resourceUsage().fsRead * 512
