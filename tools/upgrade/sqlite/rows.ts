import { globSync } from 'node:fs'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** Tables whose rows expire within minutes. */
const shortLived = /signatures$/

/** The number of rows by file and table of the databases in a folder, which no process may have open. */
export function readRows(dataDir: string): Record<string, number> {
  const rows: Record<string, number> = {}
  for (const name of globSync('**/*.db', { cwd: dataDir })) {
    using database = new DatabaseSync(path.join(dataDir, name), { readOnly: true })
    const tables = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    for (const { name: table } of tables)
      rows[`${name} ${String(table)}`] = Number(
        database.prepare(`SELECT count(*) AS count FROM "${String(table)}"`).get()?.['count'],
      )
  }
  return rows
}

/** Lists the tables with fewer rows than before. */
export function rowDifferences(before: Record<string, number>, after: Record<string, number>): string[] {
  return Object.entries(before).flatMap(([table, count]) =>
    shortLived.test(table) || (after[table] ?? 0) >= count
      ? []
      : [`${table} has ${after[table] ?? 0} rows, not ${count}`],
  )
}
