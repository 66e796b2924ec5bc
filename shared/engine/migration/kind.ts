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

/** One table of an embedded database, and its documents in MongoDB. */
export interface Kind {
  /** Name in the report for the operator. */
  name: string
  /** Table of the rows. A source with an older schema may not have it. */
  table: string
  /** Without WHERE and ORDER BY. */
  select: string
  /** The columns that order the rows, by their name in a row. They must be an index of the table. */
  key: Record<string, string>
  /** The documents of a row, by collection. Must be deterministic. */
  documents: (row: Row) => Documents
}

export type Documents = Record<string, object[]>

/** Everything that is copied from one database. */
export interface Plan {
  kinds: Kind[]
  /** The collections that the kinds fill. */
  collections: string[]
  /** A target with documents in these collections is in use, and nothing is copied into it. */
  work: string[]
}

/** The documents, with the fields common to all. */
export const asDocuments = (all: object[]): AnyDocument[] => all as AnyDocument[]

/**
 * The kind of a collection of the document kernel.
 * @param title name in the report for the operator
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
