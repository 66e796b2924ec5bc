/** Content of a document, without its appearance. */
export interface Document {
  meta: Meta
  blocks: Block[]
  /** The title, or else the first heading, for the file properties and the page footer. */
  name: string | undefined
}

export interface Meta {
  title?: string | undefined
  subtitle?: string | undefined
  author?: string | undefined
  date?: string | undefined
  subject?: string | undefined
  keywords?: string | undefined
  lang?: string | undefined
  pageSize?: 'a4' | 'letter' | undefined
}

export type Block =
  | { kind: 'heading'; level: number; spans: Span[]; anchor: string }
  | { kind: 'paragraph'; spans: Span[] }
  | { kind: 'list'; ordered: boolean; start: number; loose: boolean; items: ListItem[] }
  | { kind: 'table'; align: Align[]; rows: Span[][][] }
  | { kind: 'code'; text: string }
  | { kind: 'quote'; blocks: Block[] }
  | { kind: 'image'; source: string; alt: string }
  | { kind: 'rule' }

export type Align = 'left' | 'center' | 'right'

export interface ListItem {
  /** Whether the task is done; set only for entries of a task list. */
  done?: boolean
  blocks: Block[]
}

/** A piece of text in one style. The text '\n' is a forced line break. */
export interface Span {
  text: string
  bold?: true
  italic?: true
  mono?: true
  strike?: true
  /** `http:`, `https:`, `mailto:` or `#anchor`. */
  link?: string
}

/** An image attached to the message; Markdown refers to it by name. */
export interface Attachment {
  name: string
  bytes: Uint8Array
}
