/**
 * `npm run backup -- <data folder> <new folder>`: copies the embedded stores, even while servers run, with keys and
 * credentials, but without the master key that decrypts the gateway's part. Each database is copied as of one moment.
 * The new folder must not exist.
 */
import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { copyDatabase } from '@parley/engine/store/sqlite/source'

/** Files that accompany a database or that only a running process needs. */
const leftOut = /(?:\.db(?:-wal|-shm|-log\.[12]|\.lock|\.lock-journal|-journal)?|\.lock)$/

/** The master key belongs in another place than the data. The clients are written again by the gateway's next start. */
const omitted = [
  'master.key',
  'master.key.next',
  'dev-client.json',
  path.join('oauth', 'operator-client.json'),
]

/** @returns the copied databases. @throws Error if the target exists or the source has nothing to copy */
export function backup(source: string, target: string): string[] {
  if (existsSync(target)) throw new Error(`${target} already exists.`)
  const all = globSync('**/*', { cwd: source }).filter((name) => statSync(path.join(source, name)).isFile())
  const databases = all.filter((name) => name.endsWith('.db'))
  if (databases.length === 0) throw new Error(`No database in ${source}.`)
  // Copies agents before the gateway. The gateway's copy may then miss recent tasks, which it finds by querying the
  // agents.
  const wanted = [
    ...databases.sort(),
    ...all.filter((name) => !leftOut.test(name) && !omitted.includes(name) && !name.startsWith('cache/')),
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
    console.error('Usage: npm run backup -- <data folder> <new folder>')
    process.exitCode = 2
  } else {
    try {
      console.log(`Copied: ${backup(source, target).join(', ')} and the keys`)
      if (existsSync(path.join(source, 'master.key')))
        console.log(
          `Not copied: ${path.join(source, 'master.key')}. Store it apart from this copy: a restore needs it.`,
        )
    } catch (error) {
      console.error((error as Error).message)
      process.exitCode = 1
    }
  }
}
