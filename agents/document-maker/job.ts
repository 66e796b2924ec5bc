import type { HandlerContext } from '@parley/agent'
import { z } from 'zod'
import type { Attachment, Meta } from './document.ts'
import { defined } from './markdown/front-matter.ts'
import { reportOf } from './report.ts'
import { instructionBeside, splitRequest } from './request.ts'

/** Maximum size of the text and maximum total size of the images, in bytes. */
export const maxMarkdownBytes = 2 * 1024 * 1024
export const maxImageBytes = 20 * 1024 * 1024

export const wishesInput = z.object({
  title: z.string().trim().max(500).optional(),
  subtitle: z.string().trim().max(500).optional(),
  author: z.string().trim().max(500).optional(),
  date: z.string().trim().max(100).optional(),
  page_size: z.enum(['a4', 'letter'], { error: 'must be a4 or letter' }).optional(),
})

export type Order =
  | { kind: 'job'; markdown: string; attachments: Attachment[]; wishes: Meta }
  | { kind: 'nothing' }
  | { kind: 'refused'; reason: string }

type Given = Pick<HandlerContext, 'text' | 'data' | 'files' | 'references'>
type File = HandlerContext['files'][number]

/** Collects the text and files of the message, then the results of the referenced tasks. */
export function orderOf(given: Given): Order {
  const wishes = wishesInput.safeParse(given.data)
  if (!wishes.success) {
    const [issue] = wishes.error.issues
    return refused(`${String(issue?.path[0] ?? 'data')}: ${issue?.message ?? 'is not valid'}.`)
  }
  const unreadable = given.files.find((file) => !isMarkdown(file) && !isImage(file))
  if (unreadable !== undefined) {
    return refused(
      `I read Markdown, plain text, PNG and JPEG; ${unreadable.name ?? 'the file'} is none of them.`,
    )
  }
  const alone = given.files.length === 0 && given.references.length === 0
  const { body } = alone ? splitRequest(given.text) : instructionBeside(given.text)
  const report = reportOf(given.references)
  const texts = [body, ...given.files.filter(isMarkdown).map((file) => file.text), report.markdown]
  const own = given.files
    .filter(isImage)
    .map((file, place) => ({ name: file.name ?? `image-${place + 1}`, bytes: file.bytes }))
  const attachments = [...own, ...report.attachments]
  const markdown = withUnmentioned(texts.filter((text) => text.trim() !== '').join('\n\n'), own)
  if (markdown.trim() === '') return { kind: 'nothing' }
  if (Buffer.byteLength(markdown) > maxMarkdownBytes)
    return refused('The text is too long: I take up to 2 MB.')
  const imageBytes = attachments.reduce((sum, { bytes }) => sum + bytes.length, 0)
  if (imageBytes > maxImageBytes) return refused('The images are too large: I take up to 20 MB of them.')
  const { page_size: pageSize, ...rest } = wishes.data
  return { kind: 'job', markdown, attachments, wishes: defined({ ...rest, pageSize }) }
}

/** Appends images that the text does not refer to. */
function withUnmentioned(markdown: string, images: Attachment[]): string {
  const left = images.filter(
    ({ name }) => !markdown.includes(`](${name})`) && !markdown.includes(`](./${name})`),
  )
  return [markdown, ...left.map(({ name }) => `![](<${name}>)`)].filter((text) => text !== '').join('\n\n')
}

const refused = (reason: string): Order => ({ kind: 'refused', reason })

const typeOf = ({ mimeType }: File): string => mimeType?.split(';')[0]?.trim().toLowerCase() ?? ''

function isMarkdown(file: File): boolean {
  const unnamed = ['', 'application/octet-stream'].includes(typeOf(file))
  const named = unnamed && /\.(?:md|markdown|txt|text)$/i.test(file.name ?? '')
  return (
    (named || /^text\/(?:markdown|x-markdown|plain)$/.test(typeOf(file))) &&
    !file.bytes.subarray(0, 4096).includes(0)
  )
}

function isImage(file: File): boolean {
  const unnamed = ['', 'application/octet-stream'].includes(typeOf(file))
  return (unnamed && /\.(?:png|jpe?g)$/i.test(file.name ?? '')) || /^image\/(?:png|jpe?g)$/.test(typeOf(file))
}
