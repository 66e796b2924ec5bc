import path from 'node:path'
import { isDelta, positionOf } from '@parley/wire/codecs/parley/events'
import type {
  WireArtifact,
  WireEvent,
  WireFile,
  WirePart,
  WireStatus,
} from '@parley/wire/codecs/parley/shapes'
import { artifactIdOf } from '@parley/wire/codecs/parley/task'
import { isTerminal, type TaskState } from '@parley/wire/model/task'
import { type Io, print, say } from './io.ts'
import { oneLine } from './printable.ts'
import { saveFile } from './save-file.ts'

/** The maximum length of a progress message on the terminal. */
const progressMax = 200

/**
 * Displays a running task, with states on stderr and the answer on stdout. A terminal shows the text as it streams; a
 * pipe receives the complete text once it is final.
 */
export class TaskView {
  readonly #io: Io
  /** If undefined, the names of files are printed without saving the files. */
  readonly #folder: string | undefined
  #state: TaskState | undefined
  /** The text already printed on the terminal, by artifact. */
  readonly #streamed = new Map<string, string>()
  readonly #settled = new Set<string>()
  /** Data parts, which are printed only if the answer has no text (`--json` prints both). */
  readonly #data: unknown[] = []
  #hasText = false
  #midLine = false

  constructor(io: Io, folder: string | undefined) {
    this.#io = io
    this.#folder = folder
  }

  async event(event: WireEvent): Promise<void> {
    if (event.kind === 'status-update') {
      this.state(event.status.state, positionOf(event).taskId)
      this.#progress(event.status)
      await this.reply(event.status)
    } else if (isDelta(event)) this.#delta(event.artifact)
    else await this.artifact(event.artifact)
  }

  /** Prints a state. Final states include the task id, for use with `--reference`. */
  state(state: TaskState, taskId: string): void {
    if (state === this.#state) return
    this.#state = state
    this.#endLine()
    say(this.#io, `· ${oneLine(state)}${isTerminal(state) ? ` (task ${oneLine(taskId, 60)})` : ''}`)
  }

  /** Prints a message about the work so far. */
  #progress({ state, message }: WireStatus): void {
    if (state !== 'working' || message === undefined) return
    this.#endLine()
    say(this.#io, `· ${oneLine(textOf(message.parts, ' '), progressMax)}`)
  }

  /** Prints a finished artifact and ignores repetitions. */
  async artifact(artifact: WireArtifact): Promise<void> {
    await this.#answer(artifactIdOf(artifact), artifact.parts)
  }

  /** Prints the message of a completed task without artifacts. */
  async reply({ state, message }: WireStatus): Promise<void> {
    if (state === 'completed' && message !== undefined && this.#settled.size === 0)
      await this.#answer('', message.parts)
  }

  async #answer(id: string, parts: WirePart[]): Promise<void> {
    if (this.#settled.has(id)) return
    this.#settled.add(id)
    const text = textOf(parts)
    const unbroken = textOf(parts, '')
    const shown = unbroken === this.#streamed.get(id) ? unbroken : text
    if (text !== '') this.#wholeText(id, shown)
    for (const part of parts) {
      if (part.kind === 'data') this.#data.push(part.data)
      if (part.kind === 'file') await this.#file(part.file)
    }
  }

  /** Prints the output that was held back until the end. */
  finish(): void {
    this.#endLine()
    if (!this.#hasText) for (const data of this.#data) print(this.#io, `${JSON.stringify(data, null, 2)}\n`)
  }

  #delta(artifact: WireArtifact): void {
    const text = textOf(artifact.parts, '')
    const id = artifactIdOf(artifact)
    if (this.#io.stdout.isTTY !== true || text === '' || this.#settled.has(id)) return
    this.#streamed.set(id, (this.#streamed.get(id) ?? '') + text)
    print(this.#io, text)
    this.#midLine = !text.endsWith('\n')
  }

  /** Continues after the last delta, or prints the whole text again if deltas were lost. */
  #wholeText(id: string, text: string): void {
    this.#hasText = true
    const streamed = this.#streamed.get(id) ?? ''
    const follows = text.startsWith(streamed)
    if (!follows) this.#endLine()
    const rest = follows ? text.slice(streamed.length) : text
    if (rest === '') return this.#endLine()
    print(this.#io, rest.endsWith('\n') ? rest : `${rest}\n`)
    this.#midLine = false
  }

  async #file(file: WireFile): Promise<void> {
    this.#endLine()
    if (file.bytes === undefined)
      return say(this.#io, `file ${oneLine(file.name ?? '')} at ${oneLine(file.uri ?? '')}`)
    const bytes = Buffer.from(file.bytes, 'base64')
    const size = `${bytes.length.toLocaleString('en')} bytes`
    if (this.#folder === undefined)
      return say(this.#io, `file ${oneLine(file.name ?? 'file')} (${size}), not saved`)
    say(
      this.#io,
      `saved ${shortPath(this.#io.cwd, await saveFile(this.#folder, file.name, bytes))} (${size})`,
    )
  }

  #endLine(): void {
    if (this.#midLine) this.#io.stdout.write('\n')
    this.#midLine = false
  }
}

/** Returns a path relative to the working folder for files below it, otherwise an absolute path. */
function shortPath(cwd: string, file: string): string {
  const relative = path.relative(cwd, file)
  return relative.startsWith('..') ? file : relative
}

/** Joins the text parts: deltas without a separator, and the parts of a complete artifact with line breaks. */
export function textOf(parts: WirePart[], separator = '\n'): string {
  return parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join(separator)
}
