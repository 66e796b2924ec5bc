/** Preloaded into an agent to show that the power cut test can fail: neither SQLite nor the agent waits for the disk. */
import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { DatabaseSync } from 'node:sqlite'

const exec: unknown = Reflect.get(DatabaseSync.prototype, 'exec')
DatabaseSync.prototype.exec = function unsafeExec(sql: string) {
  const unsafe = sql.replaceAll(/synchronous\s*=\s*(FULL|NORMAL|EXTRA)/g, 'synchronous = OFF')
  if (typeof exec === 'function') exec.call(this, unsafe)
}
const notSynced = (_descriptor: number, done: (error: null) => void) => void setImmediate(done, null)
Object.assign(fs, { fsync: notSynced, fdatasync: notSynced, fsyncSync: () => {}, fdatasyncSync: () => {} })
syncBuiltinESMExports()

await using handle = await open(import.meta.filename)
const notSyncedHandle = async () => {}
Object.assign(Object.getPrototypeOf(handle) as object, { sync: notSyncedHandle, datasync: notSyncedHandle })
