import { closeSync, fsyncSync, mkdirSync, openSync } from 'node:fs'
import path from 'node:path'

/**
 * Creates the folder with mode 0700, and its parents, if they do not exist. Syncs the folders that contain the new names: after a
 * power failure, a synced file is missing if the name of its folder is.
 */
export function makeDurableFolder(folder: string): void {
  const first = mkdirSync(folder, { recursive: true, mode: 0o700 })
  // Windows cannot open a folder and needs no sync. The permission model of Node forbids it; the gateway has created the
  // folders of an agent that runs under it.
  if (first === undefined || process.platform === 'win32' || process.permission !== undefined) return
  const topmost = path.resolve(first)
  for (let made = path.resolve(folder); made.length >= topmost.length; made = path.dirname(made)) {
    const descriptor = openSync(path.dirname(made), 'r')
    try {
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
  }
}
