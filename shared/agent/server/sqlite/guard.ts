import path from 'node:path'
import { fileURLToPath } from 'node:url'

// Code of an agent can replace the functions of built-in objects, so the guard keeps its own references.
const { apply, construct } = Reflect
// oxlint-disable-next-line typescript/unbound-method -- does not use `this`
const { resolve } = path
const [toPath, toText] = [fileURLToPath, String]

/**
 * Applies the permission model of Node.js to `node:sqlite`, which opens files without a check. Does nothing in a process
 * without the permission model. Has to run before any module imports `node:sqlite`, because imports keep its original
 * exports.
 */
export function guardSqlite(): void {
  // Undefined without the permission model, in spite of its type.
  const permission: typeof process.permission | undefined = process.permission
  if (permission === undefined) return
  // oxlint-disable-next-line typescript/unbound-method -- does not use `this`
  const { has } = permission
  const sqlite = process.getBuiltinModule('node:sqlite')
  const { DatabaseSync, constants } = sqlite
  const { SQLITE_ATTACH, SQLITE_DENY, SQLITE_OK } = constants
  const { prototype } = DatabaseSync
  // oxlint-disable-next-line typescript/unbound-method -- called with `apply`
  const { open, setAuthorizer } = prototype
  // ATTACH and VACUUM INTO open files. The empty name is that of the temporary file of VACUUM.
  const decision = (action: number, name: string | null) =>
    action === SQLITE_ATTACH && name !== '' ? SQLITE_DENY : SQLITE_OK
  const limit = (database: InstanceType<typeof DatabaseSync>) => apply(setAuthorizer, database, [decision])

  /** Returns an absolute path, which SQLite does not read as a URI. */
  function permitted(given: unknown, readOnly: boolean): string {
    const name = given instanceof URL ? toPath(given) : toText(given)
    if (name === ':memory:' || name === '') return name
    const file = resolve(name)
    if (has('fs.read', file) && (readOnly || has('fs.write', file))) return file
    throw new Error(`${file} cannot be opened: an isolated agent may open databases in its data folder only`)
  }

  function GuardedDatabase(given: unknown, options: { open?: boolean; readOnly?: boolean } = {}): unknown {
    const copy = { ...options }
    const args = [permitted(given, copy.readOnly === true), copy]
    const database = construct(DatabaseSync, args, new.target ?? GuardedDatabase)
    if (copy.open !== false) limit(database)
    return database
  }
  GuardedDatabase.prototype = prototype

  const refused = () => {
    throw new Error('An isolated agent cannot use backup and setAuthorizer of node:sqlite')
  }
  Object.defineProperties(prototype, {
    constructor: { value: GuardedDatabase },
    open: {
      value() {
        apply(open, this, [])
        limit(this)
      },
    },
    setAuthorizer: { value: refused },
  })
  Object.assign(sqlite, { DatabaseSync: GuardedDatabase, backup: refused })
}
