import { spawnSync } from 'node:child_process'

/**
 * Brings a file into the system's memory, as far as it fits. A system may forget a file though it has memory to spare, and
 * a hundredth that is missing shows in every figure: a page from the disk costs fifty times one from memory. Read by another
 * process: to close a file drops the locks that a process has on it, those of its database too.
 */
export function bringIntoMemory(file: string): void {
  const { status } = spawnSync('cat', [file], { stdio: ['ignore', 'ignore', 'inherit'] })
  if (status !== 0) throw new Error(`${file} was not read`)
}

/** Makes the system forget a file. False where it cannot be told to: `dd` is not that of GNU. */
export function dropFromMemory(file: string): boolean {
  // On the disk first: what is still to be written cannot be forgotten.
  const synced = spawnSync('sync', [file]).status === 0
  return synced && spawnSync('dd', [`if=${file}`, 'iflag=nocache', 'count=0', 'status=none']).status === 0
}

/** Bytes that this process has had read from the disk so far. */
export const bytesFromDisk = () => process.resourceUsage().fsRead * 512
