import { type Output, part, pause } from '@parley/agent/internal/author/output'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine, cleanText } from '@parley/wire/model/clean-text'
import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonValue, Part } from '@parley/wire/model/task'
import { InvalidAgentAnswer } from '../client/agent-errors.ts'

/** The maximum number of parts of one result. */
const partsMax = 2000
const failureMax = 8000

/**
 * Returns the output for the result of a tool: texts, files and data in their order, or a failure with the text.
 * @throws InvalidAgentAnswer for a result that is too large
 */
export function* resultOutput(result: Record<string, unknown>, maxBytes: number): Generator<Output> {
  const content: unknown[] = Array.isArray(result['content']) ? result['content'] : []
  if (content.length > partsMax)
    throw new InvalidAgentAnswer(`The result of the tool has more than ${partsMax} parts`)
  if (Buffer.byteLength(JSON.stringify(result)) > maxBytes)
    throw new InvalidAgentAnswer(`The result of the tool is larger than ${maxBytes} bytes`)
  const structured = isJson(result['structuredContent']) ? result['structuredContent'] : undefined
  const parts = content.filter(isObject).flatMap((block, at) => partOf(block, at + 1))
  if (result['isError'] === true) {
    const texts = parts.flatMap((one) => (one.kind === 'text' ? [one.text] : []))
    const text = texts.join('\n').trim().slice(0, failureMax) || 'The tool reported an error without a text.'
    yield pause('fail', [{ kind: 'text', text }])
    return
  }
  // Servers repeat structured content as a text for clients that do not know it.
  const repeated = structured === undefined ? undefined : JSON.stringify(structured)
  const shown = repeated === undefined ? parts : parts.filter((one) => !repeats(one, repeated))
  for (const one of shown) yield part(one)
  if (structured !== undefined)
    yield part({ kind: 'data', data: isJsonObject(structured) ? structured : { value: structured } })
  if (shown.length === 0 && structured === undefined) yield 'The tool has ended without a result.'
}

function isJson(value: unknown): value is JsonValue {
  return value !== undefined
}

/** @param structured the structured content as JSON */
function repeats(one: Part, structured: string): boolean {
  if (one.kind !== 'text') return false
  const read = jsonObjectOf(`{"value":${one.text}}`)?.['value']
  return read !== undefined && JSON.stringify(read) === structured
}

function partOf(block: Record<string, unknown>, number: number): Part[] {
  const { type, text, data, mimeType, resource } = block
  if (type === 'text' && typeof text === 'string') return [{ kind: 'text', text: cleanText(text) }]
  if ((type === 'image' || type === 'audio') && typeof data === 'string')
    return fileOf(data, {
      name: `${type}-${number}${extensionOf(mimeType)}`,
      mimeType: mimeTypeOf(mimeType, `${type}/*`),
    })
  if (type === 'resource' && isObject(resource)) return resourceOf(resource, number)
  if (type === 'resource_link') return linkOf(block)
  return isJsonObject(block) ? [{ kind: 'data', data: block }] : []
}

function resourceOf({ uri, text, blob, mimeType }: Record<string, unknown>, number: number): Part[] {
  const name = nameIn(uri) ?? `resource-${number}`
  if (typeof text === 'string') {
    const mediaType = mimeTypeOf(mimeType, 'text/plain')
    return [{ kind: 'text', text: cleanText(text), mediaType, filename: name }]
  }
  if (typeof blob === 'string')
    return fileOf(blob, { name, mimeType: mimeTypeOf(mimeType, 'application/octet-stream') })
  return []
}

/** A link that callers can open is a file; another one is known to the server alone. */
function linkOf({ uri, name, description, mimeType }: Record<string, unknown>): Part[] {
  if (typeof uri !== 'string' || uri.length > 2048) return []
  const title = cleanLine(typeof name === 'string' ? name : '', 200) || (nameIn(uri) ?? 'resource')
  const url = URL.parse(uri)
  if (url?.protocol === 'https:' || url?.protocol === 'http:')
    return [
      {
        kind: 'file',
        file: { uri: url.href, name: title, mimeType: mimeTypeOf(mimeType, 'application/octet-stream') },
      },
    ]
  const about = typeof description === 'string' ? `: ${cleanLine(description, 500)}` : ''
  return [{ kind: 'text', text: `${title} (${cleanLine(uri, 2048)})${about}` }]
}

/** @throws InvalidAgentAnswer for content that is not base64 */
function fileOf(bytes: string, file: { name: string; mimeType: string }): Part[] {
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(bytes))
    throw new InvalidAgentAnswer(`${file.name} in the result of the tool is not base64`)
  return [{ kind: 'file', file: { ...file, bytes } }]
}

const extensions: Record<string, string> = {
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/gif': '.gif',
  'image/webp': '.webp',
  'image/svg+xml': '.svg',
  'audio/wav': '.wav',
  'audio/mpeg': '.mp3',
  'audio/ogg': '.ogg',
}

const extensionOf = (mimeType: unknown) => extensions[mimeTypeOf(mimeType, '')] ?? ''

function mimeTypeOf(given: unknown, fallback: string): string {
  const type = typeof given === 'string' ? given.split(';')[0]?.trim() : undefined
  return type !== undefined && /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(type) ? type : fallback
}

/** Returns the last segment of the path of a URI. */
function nameIn(uri: unknown): string | undefined {
  if (typeof uri !== 'string') return undefined
  const segment = uri
    .slice(0, 2048)
    .split(/[?#]/)[0]
    ?.split('/')
    .findLast((one) => one !== '')
  return segment === undefined ? undefined : cleanLine(segment.replace(/[\\/:]/g, '-'), 200) || undefined
}
