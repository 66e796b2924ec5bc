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
import type { SqliteDatabase } from './database.ts'

type Stored = string | number | Uint8Array | null
interface Clause {
  sql: string
  values: Stored[]
}

/** Expired documents removed with each insert: more than are added, so that the table does not grow. */
const removedPerInsert = 4

/**
 * The collections of an open database whose migrations made their tables: a column per field, indexes under the declared
 * names.
 */
export function sqliteDocuments(database: SqliteDatabase): DocumentDatabase {
  return documentDatabase(false, (declaration) => new Table(database, declaration))
}

class Table implements AnyDocuments {
  readonly #database: SqliteDatabase
  readonly #declaration: AnyCollection
  readonly #name: string
  readonly #columns: string[]
  /** The columns as a list, with the position where there is one. */
  readonly #selected: string
  readonly #ofKey: string

  constructor(database: SqliteDatabase, declaration: AnyCollection) {
    const { name, fields, key, sequence, sqlite } = declaration
    this.#database = database
    this.#declaration = declaration
    this.#name = sqlite?.table ?? name
    this.#columns = Object.keys(fields).filter((field) => sqlite?.without?.includes(field) !== true)
    this.#selected = [...(sequence ? ['seq'] : []), ...this.#columns].join(', ')
    this.#ofKey = key.map((field) => `${field} = ?`).join(' AND ')
  }

  get(key: AnyRow, where: AnyConditions = {}): Promise<AnyFound | undefined> {
    return this.#database.read(() => this.#get(key, where))
  }

  insert(row: AnyRow, options: { over?: AnyConditions; removeExpiredAt?: number } = {}): Promise<Written> {
    const { over, removeExpiredAt } = options
    const { sql, values } = this.#inserted(row, over === undefined ? undefined : this.#where(over))
    return this.#database.write(() => {
      if (removeExpiredAt !== undefined) this.#removeExpired(removeExpiredAt)
      return this.#taken(row, row) ?? (this.#run(sql, values) === 1 ? 'written' : 'refused')
    })
  }

  put(row: AnyRow, quota?: { index: string; equals: AnyConditions; max: number }): Promise<Written> {
    const { sql, values } = this.#inserted(row, { sql: 'true', values: [] })
    return this.#database.write(() => {
      const there = quota === undefined ? undefined : this.#get(row)
      if (quota !== undefined && there === undefined) {
        if (this.#count(quota.index, quota.equals) >= quota.max) return 'refused'
      }
      const taken = this.#taken(row, row)
      if (taken !== undefined) return taken
      // The newest has the highest position.
      if (this.#declaration.sequence)
        this.#run(`DELETE FROM ${this.#name} WHERE ${this.#ofKey}`, this.#key(row))
      this.#run(sql, values)
      return 'written'
    })
  }

  update(key: AnyRow, set: AnyRow, where: AnyConditions = {}): Promise<Written> {
    const changed = Object.keys(set).filter((field) => this.#columns.includes(field))
    const condition = this.#where(where)
    const sql = `UPDATE ${this.#name} SET ${changed.map((field) => `${field} = ?`).join(', ')}
      WHERE ${and(this.#ofKey, condition.sql)}`
    const values = [...changed.map((field) => stored(set[field])), ...this.#key(key), ...condition.values]
    return this.#database.write(() => {
      if (this.#declaration.unique === undefined) return this.#run(sql, values) === 1 ? 'written' : 'refused'
      const matching = `SELECT 1 FROM ${this.#name} WHERE ${and(this.#ofKey, condition.sql)}`
      const matches = this.#statement(matching).get(...this.#key(key), ...condition.values)
      if (matches === undefined) return 'refused'
      const taken = this.#taken(key, set)
      if (taken === undefined) this.#run(sql, values)
      return taken ?? 'written'
    })
  }

  remove(key: AnyRow, where: AnyConditions = {}): Promise<AnyFound | undefined> {
    const condition = this.#where(where)
    const sql = `DELETE FROM ${this.#name} WHERE ${and(this.#ofKey, condition.sql)} RETURNING ${this.#selected}`
    return this.#database.write(() => {
      const [row] = this.#statement(sql).all(...this.#key(key), ...condition.values)
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

  #get(key: AnyRow, where: AnyConditions = {}): AnyFound | undefined {
    const condition = this.#where(where)
    const sql = `SELECT ${this.#selected} FROM ${this.#name} WHERE ${and(this.#ofKey, condition.sql)}`
    const row = this.#statement(sql).get(...this.#key(key), ...condition.values)
    return row === undefined ? undefined : this.#found(row)
  }

  #count(index: string, equals: AnyConditions): number {
    const { sql, values } = this.#selection(index, equals, {}, 'count(*) AS count')
    return Number(this.#statement(sql).get(...values)?.['count'])
  }

  #removeMany(index: string, equals: AnyConditions, query: AnyQuery): number {
    const key = this.#declaration.key.join(', ')
    const { sql, values } = this.#selection(index, equals, query, key)
    return this.#run(`DELETE FROM ${this.#name} WHERE (${key}) IN (${sql})`, values)
  }

  #removeExpired(now: number): void {
    const { expires } = this.#declaration
    if (expires !== undefined) this.#removeMany(expires.index, {}, { atMost: now, limit: removedPerInsert })
  }

  /** @param over replaces the document of the same key that meets it; undefined: it stays */
  #inserted(row: AnyRow, over: Clause | undefined): Clause {
    const { key, kept = [] } = this.#declaration
    const changed = this.#columns.filter((field) => !key.includes(field) && !kept.includes(field))
    const replace = changed.map((field) => `${field} = excluded.${field}`).join(', ')
    const conflict =
      over === undefined
        ? 'ON CONFLICT DO NOTHING'
        : `ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${replace} WHERE ${over.sql}`
    const values = this.#columns.map((field) => stored(row[field]))
    const places = this.#columns.map(() => '?').join(', ')
    const sql = `INSERT INTO ${this.#name} (${this.#columns.join(', ')}) VALUES (${places}) ${conflict}`
    return { sql, values: [...values, ...(over?.values ?? [])] }
  }

  /** Another document that has a unique value of this one. */
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
    const { equals: names = [], only = {}, order, sqlite } = indexOf(this.#declaration, index)
    const clauses: Clause[] = Object.entries(only).map(([field, values]) => ({
      // Literals: SQLite compares them with the condition of a partial index.
      sql: values === true ? `${field} = 1` : oneOf(field, values),
      values: [],
    }))
    for (const field of names) {
      if (this.#columns.includes(field)) clauses.push(this.#where({ [field]: equals[field] }))
    }
    const column = order === 'sequence' ? 'seq' : order
    const { after, atMost, before, limit } = query
    if (after !== undefined) clauses.push({ sql: `${column} > ?`, values: [after] })
    if (atMost !== undefined) clauses.push({ sql: `${column} <= ?`, values: [atMost] })
    if (before !== undefined) clauses.push({ sql: `${column} < ?`, values: [before] })
    if (query.where !== undefined) clauses.push(this.#where(query.where))
    const hint = sqlite === undefined ? '' : ` INDEXED BY ${sqlite}`
    const where = and(...clauses.map(({ sql }) => sql))
    const sorted = limit === undefined || column === undefined ? '' : ` ORDER BY ${column}`
    const bound = limit === undefined ? '' : `${query.descending ? ' DESC' : ''} LIMIT ?`
    return {
      sql: `SELECT ${selected} FROM ${this.#name}${hint} WHERE ${where}${sorted}${bound}`,
      values: [...clauses.flatMap(({ values }) => values), ...(limit === undefined ? [] : [limit])],
    }
  }

  #where(conditions: AnyConditions): Clause {
    const clauses = Object.entries(conditions).map(([field, condition]): Clause => {
      if (field === 'any' && Array.isArray(condition)) {
        const any = condition.map((one: AnyConditions) => this.#where(one))
        return {
          sql: `(${any.map(({ sql }) => `(${sql})`).join(' OR ')})`,
          values: any.flatMap((one) => one.values),
        }
      }
      const column = `${this.#name}.${field}`
      if (condition instanceof Comparison) return compared(column, condition)
      return { sql: `${column} = ?`, values: [stored(valueOf(this.#declaration, field, condition))] }
    })
    return {
      sql: and(...clauses.map(({ sql }) => sql)),
      values: clauses.flatMap(({ values }) => values),
    }
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

/** A row of the table, as the kernel returns it. Columns that an earlier schema lacks are absent. */
export function rowIn({ fields }: AnyCollection, row: Record<string, unknown>): AnyFound {
  const found: AnyFound = { sequence: typeof row['seq'] === 'number' ? row['seq'] : 0 }
  for (const [field, type] of Object.entries(fields)) {
    const value = row[field]
    if (typeof value === 'string' || value instanceof Uint8Array) found[field] = value
    else if (typeof value === 'number') found[field] = type === 'flag' ? true : value
  }
  return found
}

function stored(value: Value | undefined): Stored {
  if (value === undefined) return null
  return value === true ? 1 : value
}

function compared(column: string, { operator, value }: Comparison): Clause {
  if (operator === 'absent') return { sql: `${column} IS NULL`, values: [] }
  if (operator === 'present') return { sql: `${column} IS NOT NULL`, values: [] }
  return { sql: `${column} ${operator} ?`, values: [value] }
}

function oneOf(field: string, values: readonly string[]): string {
  const [first, ...others] = values.map((value) => `'${value}'`)
  return others.length === 0 ? `${field} = ${first}` : `${field} IN (${[first, ...others].join(', ')})`
}

const and = (...conditions: string[]) => conditions.filter((sql) => sql !== '').join(' AND ') || 'true'
