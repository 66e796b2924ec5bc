/**
 * The document kernel: the operations under the store ports. A collection is declared once, as data; each adapter
 * (`sqlite/`, `mongodb/`, `memory/`) maps the declaration to its tables or collections. Guarantees of every adapter: a
 * resolved promise means that the change is durable (in memory: visible), and one operation changes its document atomically.
 * Transactions exist only in a database of one process.
 */

/**
 * `key`: a text that is compared for equality; a database that limits the length of keys stores a hash of a long one and
 * does not return it. `secret`: as `key`, but MongoDB always stores a hash. `text`: returned as it was written. `flag`:
 * `true` or absent. A question mark marks an optional field.
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
/** Required fields that every adapter returns. */
type ReturnedNames<F extends FieldTypes> = {
  [N in keyof F]: F[N] extends 'text' | 'integer' ? N : never
}[keyof F]

/** A document as it is written. */
export type Row<F extends FieldTypes> = { [N in RequiredNames<F>]: ValueOf<F[N]> } & {
  [N in Exclude<keyof F, RequiredNames<F>>]?: ValueOf<F[N]> | undefined
}

/** A document as it is read: a `key`, `secret` or `bytes` field may be missing even where it is required. */
export type Found<F extends FieldTypes> = { [N in ReturnedNames<F>]: ValueOf<F[N]> } & {
  [N in Exclude<keyof F, ReturnedNames<F>>]?: ValueOf<F[N]>
} & {
  /** Position in the order of insertion; 0 in a collection without `sequence`. */
  sequence: number
}

/** A condition other than equality. An instance, so that no object from outside is ever taken for one. */
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
/** Never holds for an absent field. */
export const below = (value: string | number) => new Comparison('<', value)
export const atMost = (value: number) => new Comparison('<=', value)
/** All must hold; of `any`, at least one entry. */
export type Conditions<F extends FieldTypes> = { [N in keyof F]?: ValueOf<F[N]> | Comparison } & {
  any?: readonly Conditions<F>[]
}

export interface Index {
  /** Fields that a query gives a value for. An adapter compares those that it stores as fields. */
  equals?: readonly string[]
  /** Only documents with one of these values. */
  only?: Record<string, readonly string[] | true>
  /** Order of the results: a field, or the order of insertion. */
  order?: string
  /** Its name in SQLite, which without statistics may choose another one. Default: SQLite chooses. */
  sqlite?: string
}

export interface Collection<F extends FieldTypes, K extends string, I extends string> {
  name: string
  fields: F
  /** Fields that identify a document. */
  key: readonly K[]
  indexes: { [N in I]: Index }
  /** Fields that `put` does not change. */
  kept?: readonly string[]
  /** No two documents have the same value. `version` is the field that each update raises by one. */
  unique?: { fields: readonly string[]; version: string }
  /** Milliseconds since 1970 after which a document no longer counts. Inserts remove a few of these. */
  expires?: { field: string; index: NoInfer<I> }
  /** Documents have a position in the order of their insertion (`seq` in SQLite). */
  sequence?: true
  sqlite?: { table?: string; without?: readonly string[] }
  mongodb?: {
    /** `_id` after the scope. Default: a hash of the key. */
    id?: (row: Record<string, Value | undefined>) => string
    /** Fields that are stored only in `_id` or `body`. Default: the key. */
    without?: readonly string[]
    names?: Record<string, string>
    /** Fields that are computed from the others, by name. */
    derived?: Record<string, (row: Record<string, Value | undefined>) => string>
    /** Field of the sequence: microseconds since 1970. */
    sequence?: string
    /** Collection in which unique values are claimed, with the prefix of each field. */
    claims?: { collection: string; prefixes: Record<string, string> }
  }
}

/** Checks a declaration and keeps its literal types. */
export function declareCollection<
  const F extends FieldTypes,
  const K extends keyof F & string,
  const I extends string,
>(collection: Collection<F, K, I>): Collection<F, K, I> {
  return collection
}

/** `refused`: the key exists, a condition does not hold or the quota is used up. `taken`: another document has the unique value. */
export type Written = 'written' | 'refused' | { taken: string }

export interface Query<F extends FieldTypes> {
  /** Bounds of the field that the index is ordered by. */
  after?: number
  atMost?: number
  before?: string | number
  descending?: boolean
  limit?: number
  where?: Conditions<F>
}

/** One collection of one scope. */
export interface Documents<F extends FieldTypes, K extends keyof F, I extends string> {
  get(key: Pick<Row<F>, K & keyof Row<F>>, where?: Conditions<F>): Promise<Found<F> | undefined>
  /**
   * Writes the document if its key is not taken, or over the one that meets `over`.
   * @param options.removeExpiredAt removes a few documents that expired before this time
   */
  insert(row: Row<F>, options?: { over?: Conditions<F>; removeExpiredAt?: number }): Promise<Written>
  /** Inserts or replaces. With `quota`, a new document is refused when the index has `max` with these values. */
  put(row: Row<F>, quota?: { index: I; equals: Conditions<F>; max: number }): Promise<Written>
  /** Sets fields, or removes those that are given as undefined, if the document exists and meets the conditions. */
  update(key: Pick<Row<F>, K & keyof Row<F>>, set: Partial<Row<F>>, where?: Conditions<F>): Promise<Written>
  /** Returns the document that was removed. */
  remove(key: Pick<Row<F>, K & keyof Row<F>>, where?: Conditions<F>): Promise<Found<F> | undefined>
  find(index: I, equals: Conditions<F>, query?: Query<F>): Promise<Found<F>[]>
  /** In the order of insertion. A page may have a few more than `limit`: documents of the same position are not divided. */
  page(
    index: I,
    equals: Conditions<F>,
    query: { after?: number; limit: number; where?: Conditions<F> },
  ): Promise<{ items: Found<F>[]; next?: number }>
  count(index: I, equals: Conditions<F>): Promise<number>
  /** Removes what `find` would return; returns how many. */
  removeMany(index: I, equals: Conditions<F>, query?: Query<F>): Promise<number>
}

/** A collection inside of a transaction. */
export interface DocumentsInTransaction<F extends FieldTypes, K extends keyof F> {
  getNow(key: Pick<Row<F>, K & keyof Row<F>>): Found<F> | undefined
  insertNow(row: Row<F>): Written
  putNow(row: Row<F>): Written
}

export type OpenInTransaction = <const F extends FieldTypes, K extends keyof F & string, I extends string>(
  declaration: Collection<F, K, I>,
) => DocumentsInTransaction<F, K>

export interface DocumentDatabase {
  /** Other processes write here too. */
  readonly shared: boolean
  /**
   * Runs several operations as one; undefined in a shared database. `run` may be called twice and must have no other side
   * effects. If it throws, nothing changes.
   */
  readonly transaction: (<T>(run: (open: OpenInTransaction) => T) => Promise<T>) | undefined
  collection<const F extends FieldTypes, K extends keyof F & string, I extends string>(
    declaration: Collection<F, K, I>,
  ): Documents<F, K, I>
}

/** The types of the adapters: declarations without their literal types. */
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
 * The types of a declaration over an adapter that checks none at run time.
 * @param transaction of a database of one process
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

/** The declared index. @throws Error where it is not declared */
export function indexOf({ name, indexes }: AnyCollection, index: string): Index {
  const found = indexes[index]
  if (found === undefined) throw new Error(`The collection ${name} declares no index ${index}`)
  return found
}

/**
 * The value, if the field can hold it.
 * @throws TypeError for any other, such as an operator of a database that came from outside
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
