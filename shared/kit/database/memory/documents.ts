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

/** In-memory collections for tests and small amounts of data. Queries examine every document. */
export function memoryDocuments(): DocumentDatabase {
  const tables = new Map<string, Table>()
  const tableOf = (declaration: AnyCollection) => {
    const table = tables.get(declaration.name) ?? new Table(declaration)
    tables.set(declaration.name, table)
    return table
  }
  return documentDatabase(tableOf, async (run) => run(tableOf))
}

class Table implements AnyDocuments {
  readonly #declaration: AnyCollection
  readonly #rows = new Map<string, AnyFound>()
  #last = 0

  constructor(declaration: AnyCollection) {
    this.#declaration = declaration
  }

  async get(key: AnyRow, where?: AnyConditions): Promise<AnyFound | undefined> {
    return this.getNow(key, where)
  }

  async insert(
    row: AnyRow,
    options: { over?: AnyConditions; removeExpiredAt?: number } = {},
  ): Promise<Written> {
    const { over, removeExpiredAt } = options
    const { expires } = this.#declaration
    if (expires !== undefined && removeExpiredAt !== undefined) {
      await this.removeMany(expires.index, {}, { atMost: removeExpiredAt, limit: 4 })
    }
    return this.insertNow(row, over)
  }

  async put(row: AnyRow, quota?: { index: string; equals: AnyConditions; max: number }): Promise<Written> {
    if (quota !== undefined && !this.#rows.has(this.#key(row))) {
      if (this.#matching(quota.index, quota.equals, {}).length >= quota.max) return 'refused'
    }
    return this.putNow(row)
  }

  getNow(key: AnyRow, where: AnyConditions = {}): AnyFound | undefined {
    const there = this.#rows.get(this.#key(key))
    return there !== undefined && meets(there, where) ? { ...there } : undefined
  }

  insertNow(row: AnyRow, over?: AnyConditions): Written {
    const there = this.#rows.get(this.#key(row))
    if (there !== undefined && (over === undefined || !meets(there, over))) return 'refused'
    return this.#taken(row, row) ?? this.#write(row, there)
  }

  putNow(row: AnyRow): Written {
    return this.#taken(row, row) ?? this.#write(row, this.#rows.get(this.#key(row)))
  }

  async update(key: AnyRow, set: AnyRow, where: AnyConditions = {}): Promise<Written> {
    const there = this.#rows.get(this.#key(key))
    if (there === undefined || !meets(there, where)) return 'refused'
    const taken = this.#taken(key, set)
    if (taken === undefined) this.#rows.set(this.#key(key), { ...there, ...set, sequence: there.sequence })
    return taken ?? 'written'
  }

  async remove(key: AnyRow, where: AnyConditions = {}): Promise<AnyFound | undefined> {
    const there = this.#rows.get(this.#key(key))
    if (there === undefined || !meets(there, where)) return undefined
    this.#rows.delete(this.#key(key))
    return there
  }

  async find(index: string, equals: AnyConditions, query: AnyQuery = {}): Promise<AnyFound[]> {
    return this.#matching(index, equals, query).map((row) => ({ ...row }))
  }

  async page(
    index: string,
    equals: AnyConditions,
    query: { after?: number; limit: number; where?: AnyConditions },
  ): Promise<{ items: AnyFound[]; next?: number }> {
    const rows = await this.find(index, equals, { ...query, limit: query.limit + 1 })
    const last = rows[query.limit - 1]
    const items = rows.slice(0, query.limit)
    return rows.length > query.limit && last !== undefined ? { items, next: last.sequence } : { items }
  }

  async count(index: string, equals: AnyConditions): Promise<number> {
    return this.#matching(index, equals, {}).length
  }

  async removeMany(index: string, equals: AnyConditions, query: AnyQuery = {}): Promise<number> {
    const rows = this.#matching(index, equals, query)
    for (const row of rows) this.#rows.delete(this.#key(row))
    return rows.length
  }

  #write(row: AnyRow, there: AnyFound | undefined): 'written' {
    const kept = this.#declaration.kept ?? []
    const from = kept.map((field) => [field, there?.[field]] as const)
    this.#last += 1
    this.#rows.set(this.#key(row), { ...row, ...Object.fromEntries(from), sequence: this.#last })
    return 'written'
  }

  /** Returns the unique field whose value another document already has. */
  #taken(key: AnyRow, row: AnyRow): { taken: string } | undefined {
    for (const field of this.#declaration.unique?.fields ?? []) {
      if (row[field] === undefined) continue
      for (const [name, other] of this.#rows) {
        if (other[field] === row[field] && name !== this.#key(key)) return { taken: field }
      }
    }
    return undefined
  }

  #matching(index: string, equals: AnyConditions, query: AnyQuery): AnyFound[] {
    const { equals: declared = [], only = {}, order } = indexOf(this.#declaration, index)
    const names = declared.filter((field) => field in this.#declaration.fields)
    const { after, atMost, before, limit, where = {}, descending } = query
    for (const field of names) valueOf(this.#declaration, field, equals[field])
    const matching = [...this.#rows.values()].filter(
      (row) =>
        Object.entries(only).every(([field, values]) =>
          values === true ? row[field] === true : values.some((value) => value === row[field]),
        ) &&
        names.every((field) => holds(row[field], equals[field])) &&
        meets(row, where),
    )
    if (order === undefined) return matching.slice(0, limit)
    const bounded = matching.filter(({ [order]: value }) => {
      if (typeof value !== 'string' && typeof value !== 'number') return false
      const isAfter = after === undefined || compare(value, after) > 0
      const isAtMost = atMost === undefined || compare(value, atMost) <= 0
      return isAfter && isAtMost && (before === undefined || compare(value, before) < 0)
    })
    const sign = descending ? -1 : 1
    return bounded.sort((a, b) => sign * compare(a[order], b[order])).slice(0, limit)
  }

  #key(row: AnyRow): string {
    return JSON.stringify(
      this.#declaration.key.map((field) => {
        const value = valueOf(this.#declaration, field, row[field])
        return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : value
      }),
    )
  }
}

function meets(row: AnyFound, conditions: AnyConditions): boolean {
  return Object.entries(conditions).every(([field, condition]) =>
    field === 'any' && Array.isArray(condition)
      ? condition.some((one: AnyConditions) => meets(row, one))
      : holds(row[field], condition),
  )
}

function holds(value: Value | undefined, condition: AnyConditions[string]): boolean {
  if (!(condition instanceof Comparison)) return value === condition
  if (condition.operator === 'absent') return value === undefined
  if (condition.operator === 'present') return value !== undefined
  if (typeof value !== 'string' && typeof value !== 'number') return false
  const order = compare(value, condition.value)
  return condition.operator === '<' ? order < 0 : order <= 0
}

function compare(a: Value | undefined, b: Value | undefined): number {
  if (a === b || a === undefined || b === undefined) return 0
  return a < b ? -1 : 1
}
