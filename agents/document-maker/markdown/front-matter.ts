import { parse } from 'yaml'
import { z } from 'zod'
import type { Meta } from '../document.ts'

const longest = 64 * 1024
const oneLine = z.coerce.string().trim().max(500).optional().catch(undefined)
const list = z.array(z.coerce.string()).transform((items) => items.join(', '))

/** Supported fields; invalid ones are ignored. */
const metaSchema = z.object({
  title: oneLine,
  subtitle: oneLine,
  author: z.union([list, oneLine]),
  authors: z.union([list, oneLine]),
  date: oneLine,
  subject: oneLine,
  description: oneLine,
  keywords: z.union([list, oneLine]),
  lang: z
    .string()
    .regex(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$/)
    .optional()
    .catch(undefined),
  pageSize: pageSizeSchema(),
  page_size: pageSizeSchema(),
})

/** Separates YAML front matter from Markdown. Keeps text that only resembles front matter. */
export function splitFrontMatter(markdown: string): { meta: Meta; markdown: string } {
  const text = markdown.replace(/^\uFEFF/, '')
  const match = /^---[ \t]*\r?\n([\s\S]*?)\r?\n(?:---|\.\.\.)[ \t]*(?:\r?\n|$)/.exec(text.slice(0, longest))
  const fields = match === null ? undefined : mappingOf(match[1] as string)
  if (match === null || fields === undefined) return { meta: {}, markdown: text }
  const parsed = metaSchema.safeParse(fields)
  const { authors, description, page_size, ...meta } = parsed.success
    ? parsed.data
    : ({} as z.output<typeof metaSchema>)
  return {
    meta: defined({
      ...meta,
      author: meta.author ?? authors,
      subject: meta.subject ?? description,
      pageSize: meta.pageSize ?? page_size,
    }),
    markdown: text.slice(match[0].length),
  }
}

/** Removes undefined and empty fields, so that spreading the result overrides nothing. */
export function defined(meta: Meta): Meta {
  return Object.fromEntries(
    Object.entries(meta).filter(([, value]) => value !== undefined && value !== ''),
  ) as Meta
}

function mappingOf(yaml: string): object | undefined {
  try {
    const value: unknown = parse(yaml)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function pageSizeSchema() {
  return z
    .string()
    .toLowerCase()
    .pipe(z.enum(['a4', 'letter']))
    .optional()
    .catch(undefined)
}
