import { readFileSync } from 'node:fs'
import path from 'node:path'

/** Version of this parley: the nearest package.json above this file, in the clone and in the installed package. */
export function ownVersion(): string {
  for (let folder = import.meta.dirname; folder !== path.dirname(folder); folder = path.dirname(folder)) {
    const manifest = manifestIn(folder)
    if (manifest?.name === 'parley') return manifest.version ?? '0.0.0'
  }
  return '0.0.0'
}

function manifestIn(folder: string): { name?: string; version?: string } | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8')) as object
  } catch {
    return undefined
  }
}
