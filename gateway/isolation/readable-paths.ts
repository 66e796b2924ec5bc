import { existsSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

export interface ReadableCode {
  /** The file that the agent's process executes. */
  entry: string
  /** The folder of the agent. */
  folder: string
  /** `read` of its `settings.json`. */
  read: readonly string[]
  /** The data folder of the gateway, which must not be readable. */
  dataDir: string
}

/**
 * Returns what an agent needs to read of the code: Node.js, the packages, its folder and the paths in its settings.
 * @throws Error if its settings name a folder that contains the data of the gateway
 */
export function readablePaths({ entry, folder, read, dataDir }: ReadableCode): string[] {
  const wanted = read.map((one) => path.resolve(folder, one))
  const data = [dataDir, realPath(dataDir)]
  for (const one of wanted) {
    const isData = [one, realPath(one)].some((named) =>
      data.some((folder) => contains(named, folder) || contains(folder, named)),
    )
    if (isData) throw new Error(`settings.json: read ${one} would include the data folder of the gateway`)
  }
  const starts = [entry, folder, process.execPath]
  const found = [
    process.execPath,
    entry,
    path.dirname(entry),
    folder,
    ...packages(),
    ...[...starts, ...starts.map(realPath)].flatMap(resolutionPaths),
    ...wanted,
  ].filter((one) => existsSync(one))
  return [...new Set([...found, ...found.map(realPath)])].filter(
    (one) => !data.some((folder) => contains(one, folder)),
  )
}

/** The folder of the packages of Parley, which in a clone are links to folders outside `node_modules`. */
function packages(): string[] {
  let at = fileURLToPath(import.meta.resolve('@parley/agent/internal/server/agent-process'))
  while (!existsSync(path.join(at, 'package.json'))) at = path.dirname(at)
  return [path.dirname(at)]
}

/** The folders and files in which Node.js looks for packages and the type of a module. */
function resolutionPaths(start: string): string[] {
  const found: string[] = []
  for (let at = path.dirname(start); at !== path.dirname(at); at = path.dirname(at)) {
    if (path.basename(at) !== 'node_modules') found.push(path.join(at, 'node_modules'))
    found.push(path.join(at, 'package.json'))
  }
  return found
}

function contains(folder: string, one: string): boolean {
  const relative = path.relative(folder, one)
  return relative === '' || !(relative.startsWith('..') || path.isAbsolute(relative))
}

function realPath(one: string): string {
  try {
    return realpathSync(one)
  } catch {
    return one
  }
}
