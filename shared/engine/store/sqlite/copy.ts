import { DatabaseSync } from 'node:sqlite'

/** A whole copy of a database as of one moment; a server may go on writing meanwhile. @throws Error when `to` is there */
export function copyDatabase(from: string, to: string): void {
  // A reader of its own: the server is the only writer, and this changes nothing.
  using database = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
  database.prepare('VACUUM INTO ?').run(to)
}
