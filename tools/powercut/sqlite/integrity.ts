import { DatabaseSync } from 'node:sqlite'

/** Returns the first finding of SQLite's own check of a file, or undefined if the file is sound. */
export function damageOf(file: string): string | undefined {
  using database = new DatabaseSync(file)
  const finding = String(database.prepare('PRAGMA integrity_check').get()?.['integrity_check'])
  return finding === 'ok' ? undefined : finding
}
