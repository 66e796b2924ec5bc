import path from 'node:path'
import { isDelta, positionOf } from '@parley/wire/codecs/parley/events'
import type { WireArtifact, WireEvent, WireFile, WirePart } from '@parley/wire/codecs/parley/shapes'
import { artifactIdOf } from '@parley/wire/codecs/parley/task'
import { isTerminal, type TaskState } from '@parley/wire/model/task'
import { type Io, print, say } from './io.ts'
import { oneLine } from './printable.ts'
import { saveFile } from './save-file.ts'

/**
 * Shows a task while it runs: states on stderr, the answer on stdout. On a terminal the answer's text appears as it is
 * made; into a pipe it goes whole, once it is sure.
 */
export class TaskView {
  readonly #io: Io
  /** Undefined: files are named, not saved. */
  readonly #folder: string | undefined
  #state: TaskState | undefined
  /** Text that already stands on the terminal, by artifact. */
  readonly #streamed = new Map<string, string>()
  readonly #settled = new Set<string>()
  /** Data of an answer that has text as well is for programs (`--json`). */
  readonly #data: unknown[] = []
  #hasText = false
  #midLine = false

  constructor(io: Io, folder: string | undefined) {
    this.#io = io
    this.#folder = folder
  }

  async event(event: WireEvent): Promise<void> {
    if (event.kind === 'status-update') this.state(event.status.state, positionOf(event).taskId)
    else if (isDelta(event)) this.#delta(event.artifact)
    else await this.artifact(event.artifact)
  }

  /** The end names the task: another message may refer to it (`--reference`). */
  state(state: TaskState, taskId: string): void {
    if (state === this.#state) return
    this.#state = state
    this.#endLine()
    say(this.#io, `· ${oneLine(state)}${isTerminal(state) ? ` (task ${oneLine(taskId, 60)})` : ''}`)
  }

  /** A finished artifact; the second time it is nothing new. */
  async artifact(artifact: WireArtifact): Promise<void> {
    const id = artifactIdOf(artifact)
    if (this.#settled.has(id)) return
    this.#settled.add(id)
    const text = textOf(artifact.parts)
    const unbroken = textOf(artifact.parts, '')
    const shown = unbroken === this.#streamed.get(id) ? unbroken : text
    if (text !== '') this.#wholeText(id, shown)
    for (const part of artifact.parts) {
      if (part.kind === 'data') this.#data.push(part.data)
      if (part.kind === 'file') await this.#file(part.file)
    }
  }

  /** Prints what waited for the end. */
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

  /** Goes on where the deltas stopped; where some were lost, the whole is printed anew. */
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

/** Relative where that is shorter to read: below the working folder. */
function shortPath(cwd: string, file: string): string {
  const relative = path.relative(cwd, file)
  return relative.startsWith('..') ? file : relative
}

/** The text parts. Deltas join without a line break, the parts of a whole artifact with one. */
export function textOf(parts: WirePart[], separator = '\n'): string {
  return parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join(separator)
}
