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
