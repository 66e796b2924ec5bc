import {
  type AnyCollection,
  type AnyConditions,
  type AnyDocuments,
  type AnyFound,
  type AnyQuery,
  type AnyRow,
  Comparison,
  type DocumentDatabase,
  documentDatabase,
  indexOf,
  type Value,
  valueOf,
  type Written,
} from '../documents.ts'
import type { SqliteDatabase, Statement } from './database.ts'

type Stored = string | number | Uint8Array | null
interface Clause {
  sql: string
  values: Stored[]
}

type DocumentFile = Pick<SqliteDatabase, 'read' | 'write' | 'statement'>

/** Number of expired documents removed by each insert: more than it adds, so that the table does not grow. */
const removedPerInsert = 4

/**
 * Provides collections in an open database whose migrations have created the tables, with a column for each field and
 * indexes with the declared names.
 */
export function sqliteDocuments(database: DocumentFile): DocumentDatabase {
  const tables = new Map<AnyCollection, Table>()
  const tableOf = (declaration: AnyCollection) => {
    const table = tables.get(declaration) ?? new Table(database, declaration)
    tables.set(declaration, table)
    return table
  }
  return documentDatabase(tableOf, (run) => database.write(() => run(tableOf)))
}

/** Like `sqliteDocuments`, with writes that do not wait for the disk (`SqliteDatabase.writeSoon`). */
export function sqliteDocumentsSoon(database: SqliteDatabase): DocumentDatabase {
  return sqliteDocuments({
    read: (run) => database.read(run),
    write: (run) => database.writeSoon(run),
    statement: (sql) => database.statement(sql),
  })
}

class Table implements AnyDocuments {
  readonly #database: DocumentFile
  readonly #declaration: AnyCollection
  readonly #name: string
  readonly #columns: string[]
  /** List of the columns, including the position if there is one. */
  readonly #selected: string
  readonly #ofKey: string
  readonly #select: string
  readonly #insert: string
  /** Assignments for an insert that replaces a document with the same key. */
  readonly #replace: string
  /** Insert statements, by the condition under which they replace a document. */
  readonly #inserts = new Map<string, Statement>()
  readonly #updates = new Map<string, Statement>()
  /** SQL for queries without conditions, by index and bounds. */
  readonly #queries = new Map<string, string>()

  constructor(database: DocumentFile, declaration: AnyCollection) {
    const { name, fields, key, kept = [], sequence, sqlite } = declaration
    this.#database = database
    this.#declaration = declaration
    this.#name = sqlite?.table ?? name
    this.#columns = Object.keys(fields).filter((field) => sqlite?.without?.includes(field) !== true)
    this.#selected = [...(sequence ? ['seq'] : []), ...this.#columns].join(', ')
    this.#ofKey = key.map((field) => `${field} = ?`).join(' AND ')
    this.#select = `SELECT ${this.#selected} FROM ${this.#name} WHERE ${this.#ofKey}`
    const places = this.#columns.map(() => '?').join(', ')
    const changed = this.#columns.filter((field) => !key.includes(field) && !kept.includes(field))
    const replace = changed.map((field) => `${field} = excluded.${field}`).join(', ')
    this.#insert = `INSERT INTO ${this.#name} (${this.#columns.join(', ')}) VALUES (${places})`
    this.#replace = `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${replace} WHERE`
  }

  get(key: AnyRow, where?: AnyConditions): Promise<AnyFound | undefined> {
    return this.#database.read(() => this.getNow(key, where))
  }

  insert(row: AnyRow, options: { over?: AnyConditions; removeExpiredAt?: number } = {}): Promise<Written> {
    const { over, removeExpiredAt } = options
    return this.#database.write(() => {
      if (removeExpiredAt !== undefined) this.#removeExpired(removeExpiredAt)
      return this.insertNow(row, over)
    })
  }

  put(row: AnyRow, quota?: { index: string; equals: AnyConditions; max: number }): Promise<Written> {
    return this.#database.write(() => {
      if (quota !== undefined && this.getNow(row) === undefined) {
        if (this.#count(quota.index, quota.equals) >= quota.max) return 'refused'
      }
      return this.putNow(row)
    })
  }

  /** Call this inside a read or write. */
  getNow(key: AnyRow, where?: AnyConditions): AnyFound | undefined {
    const values = this.#key(key)
    const sql = where === undefined ? this.#select : and(this.#select, this.#where(where, values))
    const row = this.#statement(sql).get(...values)
    return row === undefined ? undefined : this.#found(row)
  }

  /** Call this inside a write. */
  insertNow(row: AnyRow, over?: AnyConditions): Written {
    const taken = this.#taken(row, row)
    if (taken !== undefined) return taken
    const { statement, values } = this.#inserted(row, over)
    return Number(statement.run(...values).changes) === 1 ? 'written' : 'refused'
  }

  /** Call this inside a write. */
  putNow(row: AnyRow): Written {
    const taken = this.#taken(row, row)
    if (taken !== undefined) return taken
    const { statement, values } = this.#inserted(row, {})
    // The newest document has the highest position.
    if (this.#declaration.sequence)
      this.#run(`DELETE FROM ${this.#name} WHERE ${this.#ofKey}`, this.#key(row))
    statement.run(...values)
    return 'written'
  }

  update(key: AnyRow, set: AnyRow, where: AnyConditions = {}): Promise<Written> {
    const values: Stored[] = []
    let changes = ''
    for (const field in set) {
      if (!this.#columns.includes(field)) continue
      changes += changes === '' ? `${field} = ?` : `, ${field} = ?`
      values.push(stored(set[field]))
    }
    const matching = this.#key(key)
    values.push(...matching)
    const [from, condition] = [matching.length, this.#where(where, matching)]
    values.push(...matching.slice(from))
    return this.#database.write(() => {
      if (this.#declaration.unique === undefined) return this.#update(changes, condition, values)
      const sql = `SELECT 1 FROM ${this.#name} WHERE ${and(this.#ofKey, condition)}`
      if (this.#statement(sql).get(...matching) === undefined) return 'refused'
      return this.#taken(key, set) ?? this.#update(changes, condition, values)
    })
  }

  remove(key: AnyRow, where: AnyConditions = {}): Promise<AnyFound | undefined> {
    const values = this.#key(key)
    const matching = and(this.#ofKey, this.#where(where, values))
    const sql = `DELETE FROM ${this.#name} WHERE ${matching} RETURNING ${this.#selected}`
    return this.#database.write(() => {
      const [row] = this.#statement(sql).all(...values)
      return row === undefined ? undefined : this.#found(row)
    })
  }

  find(index: string, equals: AnyConditions, query: AnyQuery = {}): Promise<AnyFound[]> {
    const { sql, values } = this.#selection(index, equals, query, this.#selected)
    return this.#database.read(() => {
      const rows = this.#statement(sql)
        .all(...values)
        .map((row) => this.#found(row))
      // Without a limit all rows are read anyway; a sort in the database would need an index.
      if (query.limit !== undefined || indexOf(this.#declaration, index).order !== 'sequence') return rows
      return rows.sort((a, b) => (query.descending ? b.sequence - a.sequence : a.sequence - b.sequence))
    })
  }

  async page(
    index: string,
    equals: AnyConditions,
    query: { after?: number; limit: number; where?: AnyConditions },
  ): Promise<{ items: AnyFound[]; next?: number }> {
    const { limit } = query
    const rows = await this.find(index, equals, { ...query, limit: limit + 1 })
    const last = rows[limit - 1]
    const items = rows.slice(0, limit)
    return rows.length > limit && last !== undefined ? { items, next: last.sequence } : { items }
  }

  count(index: string, equals: AnyConditions): Promise<number> {
    return this.#database.read(() => this.#count(index, equals))
  }

  removeMany(index: string, equals: AnyConditions, query: AnyQuery = {}): Promise<number> {
    return this.#database.write(() => this.#removeMany(index, equals, query))
  }

  #update(changes: string, condition: string, values: Stored[]): Written {
    const shape = `${changes} ${condition}`
    let statement = this.#updates.get(shape)
    if (statement === undefined) {
      statement = this.#statement(`UPDATE ${this.#name} SET ${changes} WHERE ${and(this.#ofKey, condition)}`)
      this.#updates.set(shape, statement)
    }
    return Number(statement.run(...values).changes) === 1 ? 'written' : 'refused'
  }

  #count(index: string, equals: AnyConditions): number {
    const { sql, values } = this.#selection(index, equals, {}, 'count(*) AS count')
    return Number(this.#statement(sql).get(...values)?.['count'])
  }

  #removeMany(index: string, equals: AnyConditions, query: AnyQuery): number {
    const { sql, values } = this.#selection(index, equals, query, 'DELETE')
    return this.#run(sql, values)
  }

  #removeExpired(now: number): void {
    const { expires } = this.#declaration
    if (expires !== undefined) this.#removeMany(expires.index, {}, { atMost: now, limit: removedPerInsert })
  }

  /** @param over condition for replacing the document with the same key; if undefined, that document stays */
  #inserted(row: AnyRow, over: AnyConditions | undefined): { statement: Statement; values: Stored[] } {
    const values = this.#columns.map((field) => stored(row[field]))
    const condition = over === undefined ? undefined : this.#where(over, values) || 'true'
    let statement = this.#inserts.get(condition ?? '')
    if (statement === undefined) {
      const conflict = condition === undefined ? 'ON CONFLICT DO NOTHING' : `${this.#replace} ${condition}`
      statement = this.#statement(`${this.#insert} ${conflict}`)
      this.#inserts.set(condition ?? '', statement)
    }
    return { statement, values }
  }

  /** Returns the unique field whose value another document already has. */
  #taken(key: AnyRow, row: AnyRow): { taken: string } | undefined {
    for (const field of this.#declaration.unique?.fields ?? []) {
      const value = row[field]
      if (value === undefined) continue
      const sql = `SELECT 1 FROM ${this.#name} WHERE ${field} = ? AND NOT (${this.#ofKey})`
      if (this.#statement(sql).get(stored(value), ...this.#key(key)) !== undefined) return { taken: field }
    }
    return undefined
  }

  #selection(index: string, equals: AnyConditions, query: AnyQuery, selected: string): Clause {
    const { after, atMost, before, limit, descending, where } = query
    const { equals: names = [] } = indexOf(this.#declaration, index)
    const fields = names.filter((field) => this.#columns.includes(field))
    const equal = fields.map((field) => stored(valueOf(this.#declaration, field, equals[field])))
    const bounds = [after, atMost, before].filter((bound) => bound !== undefined)
    const compared: Stored[] = []
    const condition = where === undefined ? undefined : this.#where(where, compared)
    const given = (value: unknown) => (value === undefined ? '-' : '+')
    const bounded = given(after) + given(atMost) + given(before) + given(limit) + given(descending)
    const name = `${index} ${bounded} ${selected}`
    const known = condition === undefined ? this.#queries.get(name) : undefined
    const sql = known ?? this.#queryOf(index, fields, query, { selected, condition })
    if (condition === undefined) this.#queries.set(name, sql)
    return {
      sql,
      values: [...equal, ...bounds, ...compared, ...(limit === undefined ? [] : [limit])],
    }
  }

  #queryOf(
    index: string,
    fields: string[],
    { after, atMost, before, limit, descending }: AnyQuery,
    { selected, condition = '' }: { selected: string; condition: string | undefined },
  ): string {
    const { only = {}, order, sqlite } = indexOf(this.#declaration, index)
    const column = order === 'sequence' ? 'seq' : order
    const where = and(
      // Uses literals, because SQLite compares them with the condition of a partial index.
      ...Object.entries(only).map(([field, values]) => oneOf(field, values)),
      ...fields.map((field) => `${field} = ?`),
      after === undefined ? '' : `${column} > ?`,
      atMost === undefined ? '' : `${column} <= ?`,
      before === undefined ? '' : `${column} < ?`,
      condition,
    )
    const hint = sqlite === undefined ? '' : ` INDEXED BY ${sqlite}`
    const sorted = column === undefined ? '' : ` ORDER BY ${column}${descending ? ' DESC' : ''}`
    const bound = limit === undefined ? '' : `${sorted} LIMIT ?`
    const from = `FROM ${this.#name}${hint} WHERE ${where}${bound}`
    const key = this.#declaration.key.join(', ')
    return selected === 'DELETE'
      ? `DELETE FROM ${this.#name} WHERE (${key}) IN (SELECT ${key} ${from})`
      : `SELECT ${selected} ${from}`
  }

  /** Adds the values of the conditions to `values` and returns the SQL of the conditions. */
  #where(conditions: AnyConditions, values: Stored[]): string {
    let sql = ''
    for (const field in conditions) {
      const condition = conditions[field]
      if (sql !== '') sql += ' AND '
      if (field === 'any' && Array.isArray(condition)) {
        const any = condition.map((one: AnyConditions) => this.#where(one, values))
        sql += `((${any.join(') OR (')}))`
      } else if (condition instanceof Comparison) {
        sql += comparedBy(field, condition, values)
      } else {
        sql += `${field} = ?`
        values.push(stored(valueOf(this.#declaration, field, condition)))
      }
    }
    return sql
  }

  #key(row: AnyRow): Stored[] {
    return this.#declaration.key.map((field) => stored(valueOf(this.#declaration, field, row[field])))
  }

  #found(row: Record<string, unknown>): AnyFound {
    return rowIn(this.#declaration, row)
  }

  #statement(sql: string) {
    return this.#database.statement(sql)
  }

  #run(sql: string, values: Stored[]): number {
    return Number(this.#statement(sql).run(...values).changes)
  }
}

/** Converts a table row to the form that the kernel returns. Columns missing from an earlier schema are absent. */
export function rowIn({ fields }: AnyCollection, row: Record<string, unknown>): AnyFound {
  const found: AnyFound = { sequence: typeof row['seq'] === 'number' ? row['seq'] : 0 }
  for (const field in fields) {
    const value = row[field]
    if (typeof value === 'string' || value instanceof Uint8Array) found[field] = value
    else if (typeof value === 'number') found[field] = fields[field] === 'flag' ? true : value
  }
  return found
}

function stored(value: Value | undefined): Stored {
  if (value === undefined) return null
  return value === true ? 1 : value
}

function comparedBy(field: string, { operator, value }: Comparison, values: Stored[]): string {
  if (operator === 'absent') return `${field} IS NULL`
  if (operator === 'present') return `${field} IS NOT NULL`
  values.push(value)
  return `${field} ${operator} ?`
}

function oneOf(field: string, values: readonly string[] | true): string {
  if (values === true) return `${field} = 1`
  const [first, ...others] = values.map((value) => `'${value}'`)
  return others.length === 0 ? `${field} = ${first}` : `${field} IN (${[first, ...others].join(', ')})`
}

const and = (...conditions: string[]) => conditions.filter((sql) => sql !== '').join(' AND ') || 'true'
