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

/** One table of an embedded database, and what its rows are in MongoDB. */
export interface Kind {
  /** As it is shown to the operator. */
  name: string
  /** Where the rows stand; a source whose schema is older has none of them. */
  table: string
  /** Without WHERE and ORDER BY. */
  select: string
  /** The columns by which rows are ordered, by the name that they have in a row. They are an index of the table. */
  key: Record<string, string>
  /** The same row always gives the same documents, by collection. */
  documents: (row: Row) => Documents
}

export type Documents = Record<string, object[]>

/** All that is taken over from one database. */
export interface Plan {
  kinds: Kind[]
  /** Every collection that the kinds fill. */
  collections: string[]
  /** Documents in these are somebody's work: a migration adds to none. */
  work: string[]
}

/** With the fields that every document has. */
export const asDocuments = (all: object[]): AnyDocument[] => all as AnyDocument[]

/**
 * The kind of a collection of the document kernel.
 * @param title as it is shown to the operator
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
