/**
 * The document kernel provides the operations on which the store ports are built. A collection is declared once, as
 * data, and each adapter (`sqlite/`, `mongodb/`, `memory/`) maps the declaration to its tables or collections. Every
 * adapter guarantees that a change is durable (in memory, visible) once its promise resolves, and that an operation
 * changes its document atomically. Transactions exist only in a database that a single process uses.
 */

/**
 * A `key` is a string that is compared for equality; a database that limits the length of keys stores the hash of a
 * long key and does not return the key. A `secret` is a `key` that MongoDB always stores as a hash. A `text` is
 * returned as written. A `flag` is `true` or absent. A question mark denotes an optional field.
 */
export type FieldType = `${'key' | 'secret' | 'text' | 'integer' | 'bytes'}${'' | '?'}` | 'flag'
export type FieldTypes = Record<string, FieldType>
export type Value = string | number | true | Uint8Array

type ValueOf<T extends FieldType> = T extends 'flag'
  ? true
  : T extends `integer${string}`
    ? number
    : T extends `bytes${string}`
      ? Uint8Array
      : string
type RequiredNames<F extends FieldTypes> = {
  [N in keyof F]: F[N] extends `${string}?` | 'flag' ? never : N
}[keyof F]
/** The required fields that every adapter returns. */
type ReturnedNames<F extends FieldTypes> = {
  [N in keyof F]: F[N] extends 'text' | 'integer' ? N : never
}[keyof F]

/** A document to be written. */
export type Row<F extends FieldTypes> = { [N in RequiredNames<F>]: ValueOf<F[N]> } & {
  [N in Exclude<keyof F, RequiredNames<F>>]?: ValueOf<F[N]> | undefined
}

/** A document that was read. A `key`, `secret` or `bytes` field may be missing even if it is required. */
export type Found<F extends FieldTypes> = { [N in ReturnedNames<F>]: ValueOf<F[N]> } & {
  [N in Exclude<keyof F, ReturnedNames<F>>]?: ValueOf<F[N]>
} & {
  /** Position in order of insertion; 0 in a collection without `sequence`. */
  sequence: number
}

/** A condition other than equality. It is a class, so that no external object can be mistaken for a condition. */
export class Comparison {
  readonly operator: '<' | '<=' | 'absent' | 'present'
  readonly value: string | number

  constructor(operator: Comparison['operator'], value: string | number = '') {
    this.operator = operator
    this.value = value
  }
}

export const absent = new Comparison('absent')
export const present = new Comparison('present')
/** A condition that never holds for an absent field. */
export const below = (value: string | number) => new Comparison('<', value)
export const atMost = (value: number) => new Comparison('<=', value)
/** Conditions that must all hold; at least one entry of `any` must hold. */
export type Conditions<F extends FieldTypes> = { [N in keyof F]?: ValueOf<F[N]> | Comparison } & {
  any?: readonly Conditions<F>[]
}

export interface Index {
  /** Fields for which a query provides a value. An adapter compares those that it stores as fields. */
  equals?: readonly string[]
  /** Restricts the index to documents with one of these values. */
  only?: Record<string, readonly string[] | true>
  /** Field by which the results are ordered, or the order of insertion. */
  order?: string
  /** Name of the SQLite index to use, because SQLite may choose another one. By default, SQLite chooses. */
  sqlite?: string
}

export interface Collection<F extends FieldTypes, K extends string, I extends string> {
  name: string
  fields: F
  /** Fields that identify a document. */
  key: readonly K[]
  indexes: { [N in I]: Index }
  /** Fields that `put` leaves unchanged. */
  kept?: readonly string[]
  /** Fields whose values are unique across documents. Each update increments the field `version`. */
  unique?: { fields: readonly string[]; version: string }
  /** When a document expires, in milliseconds since 1970. Each insert removes a few expired documents. */
  expires?: { field: string; index: NoInfer<I> }
  /** Gives each document a position in order of insertion (`seq` in SQLite). */
  sequence?: true
  sqlite?: { table?: string; without?: readonly string[] }
  mongodb?: {
    /** Returns the part of `_id` that follows the scope. Default: a hash of the key. */
    id?: (row: Record<string, Value | undefined>) => string
    /** Fields that are stored only in `_id` or `body`. Default: the key. */
    without?: readonly string[]
    names?: Record<string, string>
    /** Field that returns the part of `_id` after the scope. It is not stored; `id` may use it to find a document. */
    idField?: string
    /** Functions that compute additional fields from the others, by field name. */
    derived?: Record<string, (row: Record<string, Value | undefined>) => string>
    /** Field that contains the sequence, in microseconds since 1970. */
    sequence?: string
    /** The collection in which unique values are claimed, and the prefix for each field. */
    claims?: { collection: string; prefixes: Record<string, string> }
  }
}

/** Type-checks a declaration and keeps its literal types. */
export function declareCollection<
  const F extends FieldTypes,
  const K extends keyof F & string,
  const I extends string,
>(collection: Collection<F, K, I>): Collection<F, K, I> {
  return collection
}

/**
 * `refused`: the key exists, a condition fails or the quota is full. `taken`: another document has the unique value.
 */
export type Written = 'written' | 'refused' | { taken: string }

export interface Query<F extends FieldTypes> {
  /** Bounds on the field by which the index is ordered. */
  after?: number
  atMost?: number
  before?: string | number
  descending?: boolean
  limit?: number
  where?: Conditions<F>
}

/** A collection within one scope. */
export interface Documents<F extends FieldTypes, K extends keyof F, I extends string> {
  get(key: Pick<Row<F>, K & keyof Row<F>>, where?: Conditions<F>): Promise<Found<F> | undefined>
  /**
   * Inserts the document if its key is free, or replaces the existing document if that one meets `over`.
   * @param options.removeExpiredAt also remove a few documents that expired before this time
   */
  insert(row: Row<F>, options?: { over?: Conditions<F>; removeExpiredAt?: number }): Promise<Written>
  /** Inserts or replaces a document. With `quota`, rejects a new one if the index has `max` with these values. */
  put(row: Row<F>, quota?: { index: I; equals: Conditions<F>; max: number }): Promise<Written>
  /** Sets fields, or removes those given as undefined, if the document exists and meets the conditions. */
  update(key: Pick<Row<F>, K & keyof Row<F>>, set: Partial<Row<F>>, where?: Conditions<F>): Promise<Written>
  /** Removes and returns the document. */
  remove(key: Pick<Row<F>, K & keyof Row<F>>, where?: Conditions<F>): Promise<Found<F> | undefined>
  find(index: I, equals: Conditions<F>, query?: Query<F>): Promise<Found<F>[]>
  /**
   * Lists documents in order of insertion. A page may exceed `limit`, because documents with equal positions stay
   * together.
   */
  page(
    index: I,
    equals: Conditions<F>,
    query: { after?: number; limit: number; where?: Conditions<F> },
  ): Promise<{ items: Found<F>[]; next?: number }>
  count(index: I, equals: Conditions<F>): Promise<number>
  /** Removes the documents that `find` would return, and returns their number. */
  removeMany(index: I, equals: Conditions<F>, query?: Query<F>): Promise<number>
}

/** A collection inside a transaction. */
export interface DocumentsInTransaction<F extends FieldTypes, K extends keyof F> {
  getNow(key: Pick<Row<F>, K & keyof Row<F>>): Found<F> | undefined
  insertNow(row: Row<F>): Written
  putNow(row: Row<F>): Written
}

export type OpenInTransaction = <const F extends FieldTypes, K extends keyof F & string, I extends string>(
  declaration: Collection<F, K, I>,
) => DocumentsInTransaction<F, K>

export interface DocumentDatabase {
  /** Whether other processes also write to this database. */
  readonly shared: boolean
  /**
   * Runs several operations atomically; undefined in a shared database. `run` may be called twice, so it must have no
   * other side effects. If it throws, nothing changes.
   */
  readonly transaction: (<T>(run: (open: OpenInTransaction) => T) => Promise<T>) | undefined
  collection<const F extends FieldTypes, K extends keyof F & string, I extends string>(
    declaration: Collection<F, K, I>,
  ): Documents<F, K, I>
}

/** The type that adapters use for declarations, without literal types. */
export type AnyCollection = Collection<FieldTypes, string, string>
export type AnyRow = Record<string, Value | undefined>
export type AnyFound = AnyRow & { sequence: number }
export type AnyConditions = { [field: string]: Value | Comparison | readonly AnyConditions[] | undefined }
export interface AnyQuery extends Omit<Query<FieldTypes>, 'where'> {
  where?: AnyConditions
}
export interface AnyDocuments {
  get(key: AnyRow, where?: AnyConditions): Promise<AnyFound | undefined>
  insert(row: AnyRow, options?: { over?: AnyConditions; removeExpiredAt?: number }): Promise<Written>
  put(row: AnyRow, quota?: { index: string; equals: AnyConditions; max: number }): Promise<Written>
  update(key: AnyRow, set: AnyRow, where?: AnyConditions): Promise<Written>
  remove(key: AnyRow, where?: AnyConditions): Promise<AnyFound | undefined>
  find(index: string, equals: AnyConditions, query?: AnyQuery): Promise<AnyFound[]>
  page(
    index: string,
    equals: AnyConditions,
    query: { after?: number; limit: number; where?: AnyConditions },
  ): Promise<{ items: AnyFound[]; next?: number }>
  count(index: string, equals: AnyConditions): Promise<number>
  removeMany(index: string, equals: AnyConditions, query?: AnyQuery): Promise<number>
}

interface AnyInTransaction {
  getNow(key: AnyRow): AnyFound | undefined
  insertNow(row: AnyRow): Written
  putNow(row: AnyRow): Written
}

/**
 * Adds the types of a declaration to an adapter that performs no checks at run time.
 * @param transaction runs a transaction in a database that a single process uses
 */
export function documentDatabase(
  open: (declaration: AnyCollection) => AnyDocuments,
  transaction?: <T>(run: (open: (declaration: AnyCollection) => AnyInTransaction) => T) => Promise<T>,
): DocumentDatabase {
  return {
    shared: transaction === undefined,
    transaction:
      transaction &&
      ((run) =>
        transaction((openNow) =>
          run(
            <const F extends FieldTypes, K extends keyof F & string, I extends string>(
              declaration: Collection<F, K, I>,
            ) => openNow(declaration as unknown as AnyCollection) as unknown as DocumentsInTransaction<F, K>,
          ),
        )),
    collection: <const F extends FieldTypes, K extends keyof F & string, I extends string>(
      declaration: Collection<F, K, I>,
    ) => open(declaration as unknown as AnyCollection) as unknown as Documents<F, K, I>,
  }
}

/** Returns the declared index. @throws Error if it is not declared */
export function indexOf({ name, indexes }: AnyCollection, index: string): Index {
  const found = indexes[index]
  if (found === undefined) throw new Error(`The collection ${name} declares no index ${index}`)
  return found
}

/**
 * Returns the value if the field can hold it.
 * @throws TypeError for any other value, such as an external object with a database operator
 */
export function valueOf({ name, fields }: AnyCollection, field: string, value: unknown): Value {
  const type = fields[field]
  if (typeof value === 'string' && type !== undefined && isText(type)) return value
  if (typeof value === 'number' && type?.startsWith('integer') === true) return value
  if (value === true && type === 'flag') return value
  if (value instanceof Uint8Array && type?.startsWith('bytes') === true) return value
  throw new TypeError(`A key of the store is a text: ${name}.${field} holds ${type ?? 'nothing'}`)
}

const isText = (type: FieldType) =>
  type !== 'flag' && !type.startsWith('integer') && !type.startsWith('bytes')

export const isOptional = (type: FieldType) => type === 'flag' || type.endsWith('?')
