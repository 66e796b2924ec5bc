/**
 * `npm run backup -- <data folder> <new folder>`: a copy of what the embedded stores hold, each database as of one moment,
 * also while servers run, with keys and credentials beside it. The new folder must not be there.
 */
import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { copyDatabase } from '@parley/engine/store/sqlite/copy'

/** What belongs to a database and is not one, or holds only for a process. */
const leftOut = /(?:\.db(?:-wal|-shm|\.lock|\.lock-journal|-journal)?|\.lock)$/

/** @returns the databases that were copied @throws Error when the target is there or the source has nothing to copy */
export function backup(source: string, target: string): string[] {
  if (existsSync(target)) throw new Error(`${target} is there already.`)
  const all = globSync('**/*', { cwd: source }).filter((name) => statSync(path.join(source, name)).isFile())
  const databases = all.filter((name) => name.endsWith('.db'))
  if (databases.length === 0) throw new Error(`There is no database in ${source}.`)
  // Agents before the gateway: it may then know of less than there is, which it finds again by asking.
  const wanted = [
    ...databases.sort(),
    ...all.filter((name) => !leftOut.test(name) && !name.startsWith('cache/')),
  ]
  for (const name of wanted) {
    const to = path.join(target, name)
    mkdirSync(path.dirname(to), { recursive: true, mode: 0o700 })
    if (name.endsWith('.db')) copyDatabase(path.join(source, name), to)
    else copyFileSync(path.join(source, name), to)
    chmodSync(to, 0o600)
  }
  return databases
}

if (import.meta.main) {
  const [source, target] = process.argv.slice(2)
  if (source === undefined || target === undefined) {
    console.error('Use: npm run backup -- <data folder> <new folder>')
    process.exitCode = 2
  } else {
    try {
      console.log(`Copied: ${backup(source, target).join(', ')}, and the keys`)
    } catch (error) {
      console.error((error as Error).message)
      process.exitCode = 1
    }
  }
}
