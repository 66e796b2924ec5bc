import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject, Part } from '@parley/wire/model/task'
import { isArtifact, isFile, isPause, type Output, type Pause, partOf } from './output.ts'

/** The output of a handler that has finished or paused. */
export interface CollectedOutput {
  artifacts: { name: string; parts: Part[] }[]
  /** Set if the handler paused or declined. There are then no artifacts, and the output so far precedes the prompt. */
  pause?: Pause
}

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

/** Collects a handler's outputs. Strings and data form the main artifact; named artifacts follow it. */
export class OutputCollector {
  readonly #maxBytes: number
  readonly #main: Part[] = []
  readonly #named: { name: string; parts: Part[] }[] = []
  #bytes = 0
  #parts = 0
  #pause: Pause | undefined

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Returns the part that streams receive for the main artifact, or true if the output is a pause. */
  take(output: Output): Part | true | undefined {
    if (output === undefined || output === null) return undefined
    if (isPause(output)) {
      this.#pause = output
      return true
    }
    if (isArtifact(output)) {
      this.#addNamed(output.name, output.parts)
      return undefined
    }
    if (isFile(output)) {
      this.#addNamed(output.file.name ?? 'file', [partOf(output)])
      return undefined
    }
    if (typeof output !== 'string' && !isPlainObject(output)) {
      throw new MalformedOutputError(
        `a handler returned ${describe(output)}, not text, a data object, a file or an artifact`,
      )
    }
    const part = this.#checked(partOf(output))
    this.#append(part)
    return part
  }

  result(): CollectedOutput {
    if (this.#pause !== undefined)
      return { artifacts: [], pause: { ...this.#pause, parts: [...this.#main, ...this.#pause.parts] } }
    const main = this.#main.length > 0 ? [{ name: 'result', parts: this.#main }] : []
    return { artifacts: [...main, ...this.#named] }
  }

  #addNamed(name: unknown, parts: readonly Part[]): void {
    if (typeof name !== 'string' || name.length > nameMax)
      throw new MalformedOutputError(
        `the name of an artifact must be a string of at most ${nameMax} characters`,
      )
    if (this.#named.length >= artifactsMax)
      throw new OutputTooLargeError(`the output has more than ${artifactsMax} artifacts`)
    // The parts are copied, because the handler may change its own afterwards.
    this.#named.push({ name, parts: parts.map((part) => this.#counted({ ...this.#checked(part) })) })
  }

  /** Appends a part; consecutive texts are joined. */
  #append(part: Part): void {
    const last = this.#main.at(-1)
    if (part.kind === 'text' && last?.kind === 'text') last.text += part.text
    else this.#main.push(this.#counted({ ...part }))
  }

  #counted(part: Part): Part {
    this.#parts += 1
    if (this.#parts > partsMax) throw new OutputTooLargeError(`the output has more than ${partsMax} parts`)
    return part
  }

  #checked(part: Part): Part {
    if (part.kind === 'text' && typeof part.text === 'string') this.#grow(Buffer.byteLength(part.text))
    else if (part.kind === 'file' && typeof part.file.bytes === 'string') this.#grow(part.file.bytes.length)
    else if (part.kind === 'data' && isPlainObject(part.data)) return this.#checkedData(part.data)
    else throw new MalformedOutputError('a handler returned a part that is not text, a data object or a file')
    return part
  }

  /** Copies the data by a round trip through JSON, so that the handler cannot change it afterwards. */
  #checkedData(data: JsonObject): Part {
    let text: string
    try {
      text = JSON.stringify(data)
    } catch (error) {
      throw new MalformedOutputError('a handler returned data that is not JSON', { cause: error })
    }
    // `toJSON` may return any value, even undefined.
    const copy = jsonObjectOf(text)
    if (copy === undefined)
      throw new MalformedOutputError('a handler returned data that is not a JSON object')
    this.#grow(Buffer.byteLength(text))
    return { kind: 'data', data: copy }
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

function describe(value: unknown): string {
  return Array.isArray(value)
    ? 'an array'
    : typeof value === 'object'
      ? 'a class instance'
      : `a ${typeof value}`
}
