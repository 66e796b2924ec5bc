import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject, Part } from '@parley/wire/model/task'
import {
  type ArtifactFields,
  isArtifact,
  isDelta,
  isFile,
  isPart,
  isPause,
  isProgress,
  isReply,
  type Output,
  type Pause,
  partOf,
  type Reply,
  type StreamedArtifact,
} from './output.ts'

/** The output of a handler that has finished or paused. */
export interface CollectedOutput {
  artifacts: (ArtifactFields & { parts: Part[]; streamed?: string })[]
  /** Set if the handler paused or declined. There are then no artifacts, and the output so far precedes the prompt. */
  pause?: Pause
  /** Set if the handler answered with a message. It begins with the parts of the main artifact, which does not exist. */
  reply?: Pick<Reply, 'parts' | 'asTask' | 'metadata'>
}

/** An output that takes effect while the handler runs: a delta, by default of the main artifact, or a progress message. */
export type TakenOutput =
  | { kind: 'delta'; part: Part; artifact?: StreamedArtifact }
  | { kind: 'progress'; parts: Part[] }
  /** The output is a pause or a reply. */
  | 'end'

/** The handler's output cannot be stored as an artifact (-32006). */
export class MalformedOutputError extends Error {
  override readonly name = 'MalformedOutputError'
}

/** The output is larger than the agent allows. */
export class OutputTooLargeError extends Error {
  override readonly name = 'OutputTooLargeError'
}

/** Limits on the number of small parts, which `maxBytes` does not restrict. */
const [partsMax, artifactsMax, nameMax] = [100_000, 10_000, 1024]
const [uriMax, extensionsMax] = [2048, 100]
const progressMaxBytes = 16 * 1024

/** Collects a handler's outputs. Strings and data form the main artifact; named artifacts follow it. */
export class OutputCollector {
  readonly #maxBytes: number
  readonly #main: Part[] = []
  readonly #named: CollectedOutput['artifacts'] = []
  #bytes = 0
  #parts = 0
  #pause: Pause | undefined
  #reply: CollectedOutput['reply']

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  take(output: Output): TakenOutput | undefined {
    if (output === undefined || output === null) return undefined
    if (isPause(output)) {
      this.#pause = output
      return 'end'
    }
    if (isReply(output)) {
      const parts = output.parts.map((part) => this.#counted(this.#checked(part)))
      const { asTask, metadata } = output
      this.#reply = { parts, asTask, ...(metadata && { metadata: this.#object(metadata) }) }
      return 'end'
    }
    if (isDelta(output))
      return { kind: 'delta', part: this.#uncounted(output.part), artifact: output.artifact }
    if (isProgress(output)) return { kind: 'progress', parts: this.#progress(output.parts) }
    if (isArtifact(output)) {
      this.#addNamed(output, output.parts, output.streamed)
      return undefined
    }
    if (isFile(output)) {
      this.#addNamed({ name: output.file.name ?? 'file' }, [partOf(output)])
      return undefined
    }
    if (isPart(output)) {
      const part = this.#checked(output.part)
      this.#append(part)
      return { kind: 'delta', part }
    }
    if (typeof output !== 'string' && !isPlainObject(output)) {
      throw new MalformedOutputError(
        `a handler returned ${describe(output)}, not text, a data object, a file or an artifact`,
      )
    }
    const part = this.#checked(partOf(output))
    this.#append(part)
    return { kind: 'delta', part }
  }

  result(): CollectedOutput {
    if (this.#pause !== undefined)
      return { artifacts: [], pause: { ...this.#pause, parts: [...this.#main, ...this.#pause.parts] } }
    if (this.#reply !== undefined) {
      const parts = [...this.#main, ...this.#reply.parts]
      return { artifacts: this.#named, reply: { ...this.#reply, parts } }
    }
    const main = this.#main.length > 0 ? [{ name: 'result', parts: this.#main }] : []
    return { artifacts: [...main, ...this.#named] }
  }

  #progress(parts: readonly Part[]): Part[] {
    const copies = parts.map((part) => this.#uncounted(part))
    if (Buffer.byteLength(JSON.stringify(copies)) > progressMaxBytes)
      throw new OutputTooLargeError(`a progress message is larger than ${progressMaxBytes} bytes`)
    return copies
  }

  /** Copies a part that is not stored as output. */
  #uncounted(part: Part): Part {
    const before = this.#bytes
    const copy = this.#checked(part)
    this.#bytes = before
    return copy
  }

  #addNamed(given: ArtifactFields, parts: readonly Part[], streamed?: string): void {
    const { name, description, extensions, metadata }: { [K in keyof ArtifactFields]: unknown } = given
    if (typeof name !== 'string' || name.length > nameMax)
      throw new MalformedOutputError(
        `the name of an artifact must be a string of at most ${nameMax} characters`,
      )
    if (this.#named.length >= artifactsMax)
      throw new OutputTooLargeError(`the output has more than ${artifactsMax} artifacts`)
    const fields: ArtifactFields = { name }
    if (description !== undefined) fields.description = this.#text(description, 'description of an artifact')
    if (metadata !== undefined) fields.metadata = this.#object(metadata)
    if (extensions !== undefined) fields.extensions = this.#extensions(extensions)
    const counted = parts.map((part) => this.#counted(this.#checked(part)))
    this.#named.push({ ...fields, parts: counted, ...(streamed && { streamed }) })
  }

  /** Appends a part; consecutive texts without other fields are joined. */
  #append(part: Part): void {
    const last = this.#main.at(-1)
    if (last !== undefined && isPlainText(part) && isPlainText(last)) last.text += part.text
    else this.#main.push(this.#counted({ ...part }))
  }

  #counted(part: Part): Part {
    this.#parts += 1
    if (this.#parts > partsMax) throw new OutputTooLargeError(`the output has more than ${partsMax} parts`)
    return part
  }

  /** Copies the part, because the handler may change its own afterwards. */
  #checked(part: Part): Part {
    const checked = this.#content(part)
    if (part.metadata !== undefined) checked.metadata = this.#object(part.metadata)
    if (part.kind === 'file' || checked.kind === 'file') return checked
    const { mediaType, filename } = part
    if (mediaType !== undefined) checked.mediaType = this.#text(mediaType, 'media type of a part')
    if (filename !== undefined) checked.filename = this.#text(filename, 'file name of a part')
    return checked
  }

  #content(part: Part): Part {
    if (part.kind === 'text' && typeof part.text === 'string') {
      this.#grow(Buffer.byteLength(part.text))
      return { kind: 'text', text: part.text }
    }
    if (part.kind === 'data' && isPlainObject(part.data))
      return { kind: 'data', data: this.#object(part.data) }
    if (part.kind !== 'file')
      throw new MalformedOutputError('a handler returned a part that is not text, a data object or a file')
    const { bytes, uri, ...names } = part.file
    if (typeof bytes === 'string' && uri === undefined) {
      this.#grow(bytes.length)
      return { kind: 'file', file: { ...names, bytes } }
    }
    if (bytes === undefined && isWebAddress(uri)) return { kind: 'file', file: { ...names, uri } }
    throw new MalformedOutputError(
      'a handler returned a file that has neither bytes nor an http or https URI',
    )
  }

  /** Copies the object by a round trip through JSON. */
  #object(value: unknown): JsonObject {
    let text: string
    try {
      text = JSON.stringify(value)
    } catch (error) {
      throw new MalformedOutputError('a handler returned data that is not JSON', { cause: error })
    }
    // `toJSON` may return any value, even undefined.
    const copy = jsonObjectOf(text)
    if (copy === undefined)
      throw new MalformedOutputError('a handler returned data that is not a JSON object')
    this.#grow(Buffer.byteLength(text))
    return copy
  }

  #text(value: unknown, what: string): string {
    if (typeof value !== 'string') throw new MalformedOutputError(`the ${what} must be a string`)
    this.#grow(Buffer.byteLength(value))
    return value
  }

  #extensions(value: unknown): string[] {
    if (!Array.isArray(value) || value.length > extensionsMax)
      throw new MalformedOutputError(
        `the extensions of an artifact must be an array of at most ${extensionsMax} URIs`,
      )
    return value.map((uri: unknown) => this.#text(uri, 'URI of an extension'))
  }

  #grow(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#maxBytes) {
      throw new OutputTooLargeError(`the output is larger than ${this.#maxBytes} bytes (ARTIFACT_MAX_BYTES)`)
    }
  }
}

function isPlainObject(value: unknown): value is JsonObject {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

type PlainText = Extract<Part, { kind: 'text' }>

function isPlainText(part: Part): part is PlainText {
  if (part.kind !== 'text') return false
  return part.metadata === undefined && part.mediaType === undefined && part.filename === undefined
}

function isWebAddress(uri: unknown): uri is string {
  return typeof uri === 'string' && uri.length <= uriMax && /^https?:\/\//.test(uri)
}

function describe(value: unknown): string {
  return Array.isArray(value)
    ? 'an array'
    : typeof value === 'object'
      ? 'a class instance'
      : `a ${typeof value}`
}
