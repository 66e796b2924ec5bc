import type {
  AnyCollection,
  Collection,
  FieldTypes,
  Found,
  Row as WrittenRow,
} from '@parley/kit/database/documents'
import { Layout } from '@parley/kit/database/mongodb/layout'
import { rowIn } from '@parley/kit/database/sqlite/documents'
import type { AnyDocument } from '../store/mongodb/import.ts'
import type { Row } from '../store/sqlite/source.ts'

/** One table of an embedded database, and the corresponding documents in MongoDB. */
export interface Kind {
  /** The name in the operator's report. */
  name: string
  /** The table that contains the rows. A source with an older schema may not have it. */
  table: string
  /** The query, without WHERE and ORDER BY. */
  select: string
  /** The columns that define the row order, by their name in a row. The table must have an index on them. */
  key: Record<string, string>
  /** Returns a row's documents by collection. Must be deterministic. */
  documents: (row: Row) => Documents
}

export type Documents = Record<string, object[]>

/** Everything that is copied from one database. */
export interface Plan {
  kinds: Kind[]
  /** The collections that receive the documents. */
  collections: string[]
  /** If one of these collections has documents, the target is in use and nothing is copied into it. */
  work: string[]
}

/** Types the documents by the fields that all of them share. */
export const asDocuments = (all: object[]): AnyDocument[] => all as AnyDocument[]

/**
 * Returns the kind for a collection that the document kernel stores.
 * @param title the name in the operator's report
 * @param convert completes a row that an earlier version wrote
 */
export function collectionKind<F extends FieldTypes, K extends string, I extends string>(
  { title, scope, declaration }: { title: string; scope: string; declaration: Collection<F, K, I> },
  convert: (row: Found<F>) => WrittenRow<F>,
): Kind {
  const any = declaration as unknown as AnyCollection
  const layout = new Layout(scope, any)
  const table = any.sqlite?.table ?? any.name
  const key = any.sequence ? ['seq'] : any.key
  return {
    name: title,
    table,
    select: `SELECT * FROM ${table}`,
    key: Object.fromEntries(key.map((field) => [field, field])),
    documents: (row) => {
      const found = rowIn(any, row)
      const written = convert(found as unknown as Found<F>)
      return { [any.name]: [layout.documentOf(written, found.sequence)] }
    },
  }
}
