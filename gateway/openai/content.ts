import { sniffMediaType } from '@parley/wire/model/media-signature'
import type { Part } from '@parley/wire/model/task'
import { z } from 'zod'
import { refused, unsupported } from './request-error.ts'

const texts = z.object({ type: z.enum(['text', 'input_text', 'output_text']), text: z.string() })
const refusal = z.object({ type: z.literal('refusal'), refusal: z.string() })
const chatImage = z.object({ type: z.literal('image_url'), image_url: z.object({ url: z.string() }) })
const inputImage = z.object({ type: z.literal('input_image'), image_url: z.string() })
const fileFields = z.object({
  file_data: z.string().nullish(),
  file_url: z.string().nullish(),
  filename: z.string().max(255).nullish(),
})
const chatFile = z.object({ type: z.literal('file'), file: fileFields })
const inputFile = fileFields.extend({ type: z.literal('input_file') })
const audio = z.object({
  type: z.literal('input_audio'),
  input_audio: z.object({ data: z.string(), format: z.enum(['wav', 'mp3']) }),
})

/** A part of the content of a message, in either API. */
const contentPart = z.discriminatedUnion('type', [
  texts,
  refusal,
  chatImage,
  inputImage,
  chatFile,
  inputFile,
  audio,
])
type ContentPart = z.output<typeof contentPart>

const partsMax = 1000
/** The content of a message: text, or a list of parts. */
export const messageContent = z.union([z.string(), z.array(contentPart).max(partsMax)])
export type MessageContent = z.output<typeof messageContent>

/** Returns the parts of a message for an agent. @throws ParleyError InvalidParams for a file that cannot be sent */
export function partsOf(content: MessageContent, param: string): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  return content.map((part, index) => partOf(part, `${param}[${index}]`))
}

/** Returns the text of a message, with a placeholder for each file. */
export function textOf(content: MessageContent | null | undefined): string {
  if (content === null || content === undefined) return ''
  if (typeof content === 'string') return withoutDataUrls(content)
  return content.map((part) => textOfPart(part)).join('\n')
}

function textOfPart(part: ContentPart): string {
  if ('text' in part) return withoutDataUrls(part.text)
  if (part.type === 'refusal') return part.refusal
  const { filename } = part.type === 'file' ? part.file : part.type === 'input_file' ? part : {}
  return `[${part.type.includes('image') ? 'image' : (filename ?? 'file')}]`
}

/** Images of earlier answers come back in the conversation as Markdown. They are not sent again. */
function withoutDataUrls(text: string): string {
  return text.includes('](data:') ? text.replace(/\]\(data:[^)\s]*\)/g, '](image)') : text
}

function partOf(part: ContentPart, param: string): Part {
  if ('text' in part) return { kind: 'text', text: part.text }
  if (part.type === 'refusal') return { kind: 'text', text: part.refusal }
  if (part.type === 'image_url') return imagePart(part.image_url.url, `${param}.image_url.url`)
  if (part.type === 'input_image') return imagePart(part.image_url, `${param}.image_url`)
  if (part.type === 'input_audio') {
    const { data, format } = part.input_audio
    const mimeType = format === 'wav' ? 'audio/wav' : 'audio/mpeg'
    return filePart({ bytes: decoded(data, `${param}.input_audio.data`), mimeType })
  }
  const { file_data: data, file_url: url, filename } = part.type === 'file' ? part.file : part
  const name = filename ?? undefined
  if (typeof data === 'string') return dataFile(data, name, `${param}.file_data`)
  if (typeof url === 'string') return { kind: 'file', file: { ...named(name), uri: webAddress(url, param) } }
  throw unsupported(
    param,
    'A file needs file_data or file_url. Files of other APIs (file_id) are not supported.',
  )
}

function imagePart(url: string, param: string): Part {
  const inline = dataUrl(url)
  if (inline === undefined) return { kind: 'file', file: { uri: webAddress(url, param) } }
  const bytes = decoded(inline.data, param)
  const mimeType = imageTypeOf(bytes)
  if (mimeType === undefined)
    throw refused(
      param,
      'This is not a PNG, JPEG, GIF, WebP, BMP or AVIF image. Send other data as a file.',
      'invalid_image_format',
    )
  return filePart({ bytes, mimeType })
}

/** The content decides whether a file is an image. Otherwise, the client's statement or the file name decides. */
function dataFile(text: string, name: string | undefined, param: string): Part {
  const inline = dataUrl(text)
  const bytes = decoded(inline?.data ?? text, param)
  const declared = inline?.mimeType.startsWith('image/') === true ? undefined : inline?.mimeType
  const isVague = declared === undefined || declared === '' || declared === 'application/octet-stream'
  const mimeType = imageTypeOf(bytes) ?? (isVague ? typeOfName(name) : declared)
  return filePart({ bytes, name, mimeType })
}

const typeOfExtension: Readonly<Record<string, string>> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  txt: 'text/plain',
  md: 'text/markdown',
  html: 'text/html',
  json: 'application/json',
  xml: 'application/xml',
  svg: 'image/svg+xml',
  pdf: 'application/pdf',
}

/** Returns the type of a file by the extension of its name. */
function typeOfName(name: string | undefined): string {
  const extension = /\.([a-z\d]+)$/i.exec(name ?? '')?.[1]?.toLowerCase() ?? ''
  return typeOfExtension[extension] ?? 'application/octet-stream'
}

function imageTypeOf(content: Uint8Array): string | undefined {
  const type = sniffMediaType(content)
  return type?.startsWith('image/') === true ? type : undefined
}

function filePart({
  bytes,
  name,
  mimeType,
}: {
  bytes: Buffer
  name?: string | undefined
  mimeType: string
}): Part {
  return { kind: 'file', file: { ...named(name), mimeType, bytes: bytes.toString('base64') } }
}

const named = (name: string | undefined) => (name === undefined ? {} : { name })

/** Splits a `data:` URL; undefined for any other text. */
function dataUrl(text: string): { mimeType: string; data: string } | undefined {
  if (!/^data:/i.test(text.slice(0, 5))) return undefined
  const comma = text.indexOf(',')
  const [mimeType = '', ...parameters] = text.slice(5, Math.max(comma, 5)).split(';')
  const isBase64 = parameters.at(-1)?.trim().toLowerCase() === 'base64'
  const data = text.slice(comma + 1)
  const shown = mimeType.trim().toLowerCase()
  return { mimeType: shown, data: isBase64 ? data : Buffer.from(unescaped(data)).toString('base64') }
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

function decoded(text: string, param: string): Buffer {
  const base64 = text.trim()
  if (!/^[\w+/\s-]+={0,2}$/.test(base64)) throw refused(param, 'This is not base64.')
  return Buffer.from(base64, 'base64')
}

function webAddress(url: string, param: string): string {
  if (url.length <= 2048 && /^https?:\/\//i.test(url) && URL.canParse(url)) return url
  throw refused(
    param,
    'The address must be a data: URL, or an http or https URL of at most 2,048 characters.',
  )
}
