import { ParleyError } from '@parley/wire/errors'
import type { Document, Filter } from 'mongodb'
import {
  type AnyCollection,
  type AnyConditions,
  type AnyFound,
  type AnyQuery,
  type AnyRow,
  Comparison,
  indexOf,
  isOptional,
  type Value,
  valueOf,
} from '../documents.ts'
import { hashOf, keyText } from '../keys.ts'

/** A stored document, in which `_id` and `agent_id` contain the scope and the fields follow. */
export interface StoredDocument extends Document {
  _id: string
  agent_id: string
}

const mebibyte = 1024 * 1024

/** Maximum size of a document's text, and the error for larger ones. */
export interface Bound {
  maxBytes: number
  error: 'InvalidParams' | 'InvalidAgentResponse'
}

/** A document can be up to 16 MiB; this limit leaves room for its other fields. */
export const documentBound: Bound = { maxBytes: 15 * mebibyte, error: 'InvalidParams' }

/** @param otherBytes size of the other fields @throws ParleyError */
export function refuseTooLarge(body: string, { maxBytes, error }: Bound, otherBytes = 0): void {
  const room = maxBytes - otherBytes
  // A UTF-16 code unit has at most three bytes in UTF-8.
  if (body.length * 3 <= room || Buffer.byteLength(body) <= room) return
  throw new ParleyError(error, {
    message: `Too large to be stored: at most ${maxBytes / mebibyte} MiB without the large parts`,
    data: { reason: 'too_large', maxBytes },
  })
}

/** Converts rows to and from their form in MongoDB. */
export class Layout {
  readonly #scope: string
  readonly #declaration: AnyCollection
  /** Document field for each row field. */
  readonly #names: Map<string, string>
  /** Functions for fields that exist only in documents, by field name. */
  readonly #derived: Record<string, (row: AnyRow) => string>

  constructor(scope: string, declaration: AnyCollection) {
    const { fields, key, mongodb = {} } = declaration
    const { without = key, names = {} } = mongodb
    const stored = Object.keys(fields).filter((field) => !without.includes(field))
    this.#scope = scope
    this.#declaration = declaration
    this.#names = new Map(stored.map((field) => [field, names[field] ?? field]))
    this.#derived = mongodb.derived ?? {}
  }

  keyOf(row: AnyRow): { _id: string; agent_id: string } {
    const { key, mongodb } = this.#declaration
    const values = key.map((field) => String(valueOf(this.#declaration, field, row[field])))
    const id = mongodb?.id?.(row) ?? hashOf(...values)
    return { _id: `${this.#scope}/${id}`, agent_id: this.#scope }
  }

  documentOf(row: AnyRow, sequence: number): StoredDocument {
    const field = this.#declaration.mongodb?.sequence
    const { $set } = this.changeOf(row)
    return {
      ...this.keyOf(row),
      ...$set,
      ...this.derivedOf(row),
      ...(field !== undefined && { [field]: sequence }),
    }
  }

  derivedOf(row: AnyRow): Record<string, string> {
    return Object.fromEntries(Object.entries(this.#derived).map(([field, of]) => [field, of(row)]))
  }

  /** Returns the fields to set and the names of the fields to remove. */
  changeOf(row: AnyRow): { $set: Record<string, Value>; gone: string[] } {
    const $set: Record<string, Value> = {}
    const gone: string[] = []
    for (const [field, value] of Object.entries(row)) {
      const name = this.#names.get(field)
      if (name === undefined) continue
      if (value === undefined) gone.push(name)
      else $set[name] = this.#encoded(field, value)
    }
    return { $set, gone }
  }

  /** Returns all stored fields of the row except `kept`, including those that the row omits. */
  wholeOf(row: AnyRow): AnyRow {
    const { kept = [] } = this.#declaration
    const fields = [...this.#names.keys()].filter((field) => !kept.includes(field))
    return Object.fromEntries(fields.map((field) => [field, row[field]]))
  }

  rowOf(document: StoredDocument): AnyFound {
    const { fields, mongodb } = this.#declaration
    const row: AnyFound = { sequence: Number(document[mongodb?.sequence ?? ''] ?? 0) }
    for (const [field, name] of this.#names) {
      const value: unknown = document[name]
      const type = fields[field]
      if (type?.startsWith('secret') === true) continue
      // A long key is stored as a hash.
      if (type?.startsWith('key') === true && String(value).startsWith('#')) continue
      if (typeof value === 'string' || typeof value === 'number' || value === true) row[field] = value
      // Integers over 2^31 may be returned as Long.
      else if (type?.startsWith('integer') === true && value !== undefined) row[field] = Number(value)
    }
    if (mongodb?.idField !== undefined) row[mongodb.idField] = document._id.slice(this.#scope.length + 1)
    return row
  }

  filterOf(conditions: AnyConditions): Filter<StoredDocument> {
    const filter: Record<string, unknown> = { agent_id: this.#scope }
    for (const [field, condition] of Object.entries(conditions)) {
      if (field === 'any' && Array.isArray(condition)) {
        filter['$or'] = condition.map((one: AnyConditions) => {
          const { agent_id: _scope, ...rest } = this.filterOf(one)
          return rest
        })
        continue
      }
      const name = this.#names.get(field)
      if (name !== undefined) filter[name] = this.#compared(field, condition)
    }
    return filter
  }

  /** Returns the filter and sort order of a query. */
  queryOf(
    index: string,
    equals: AnyConditions,
    query: AnyQuery,
  ): { filter: Filter<StoredDocument>; order?: string } {
    const { equals: names = [], only = {}, order } = indexOf(this.#declaration, index)
    const given = Object.fromEntries(
      names.filter((field) => this.#names.has(field)).map((field) => [field, equals[field]]),
    )
    const filter: Record<string, unknown> = this.filterOf({ ...given, ...query.where })
    for (const field of names) {
      const of = this.#derived[field]
      if (of !== undefined) filter[field] = of(rowOfValues(equals))
    }
    for (const [field, values] of Object.entries(only)) {
      const [first, ...others] = values === true ? [true] : values
      filter[this.#names.get(field) ?? field] = others.length === 0 ? first : { $in: values }
    }
    if (order === undefined) return { filter }
    const name = order === 'sequence' ? (this.#declaration.mongodb?.sequence ?? '_id') : this.nameOf(order)
    const range = { ...this.#rangeOf(order, query) }
    if (Object.keys(range).length > 0) filter[name] = range
    return { filter, order: name }
  }

  nameOf(field: string): string {
    return this.#names.get(field) ?? field
  }

  #rangeOf(order: string, { after, atMost, before }: AnyQuery): object {
    const range = {
      ...(after !== undefined && { $gt: after }),
      ...(atMost !== undefined && { $lte: atMost }),
      ...(before !== undefined && { $lt: typeof before === 'string' ? keyText(before) : before }),
    }
    const type = this.#declaration.fields[order]
    // Repeats the condition of the partial index.
    const partial = type !== undefined && isOptional(type) && Object.keys(range).length > 0
    return partial ? { $exists: true, ...range } : range
  }

  #encoded(field: string, value: Value): Value {
    const type = this.#declaration.fields[field]
    if (typeof value !== 'string') return value
    if (type?.startsWith('secret') === true) return hashOf(value)
    if (type?.startsWith('key') === true) return keyText(value)
    refuseTooLarge(value, documentBound)
    return value
  }

  #compared(field: string, condition: unknown): unknown {
    if (!(condition instanceof Comparison)) {
      return this.#encoded(field, valueOf(this.#declaration, field, condition))
    }
    const { operator, value } = condition
    if (operator === 'absent' || operator === 'present') return { $exists: operator === 'present' }
    return operator === '<' ? { $lt: value } : { $lte: value }
  }
}

/** Returns the fields that are compared for equality. */
function rowOfValues(conditions: AnyConditions): AnyRow {
  const row: AnyRow = {}
  for (const [field, condition] of Object.entries(conditions)) {
    if (typeof condition === 'string' || typeof condition === 'number') row[field] = condition
  }
  return row
}
