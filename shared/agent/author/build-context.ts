import type { TaskRecord } from '@parley/engine/store/store'
import type { FileContent, JsonObject, Message, Part, Task } from '@parley/wire/model/task'
import type { Agents } from './agents.ts'
import type { HandlerContext, HandlerLog, InputFile, InputPart, Reference } from './context.ts'
import { pause, reply } from './output.ts'
import { statedConversation } from './stated-conversation.ts'

export interface ContextParts {
  record: TaskRecord
  references: Task[]
  contextHistory: TaskRecord[]
  skillId: string | undefined
  input: unknown
  signal: AbortSignal
  /** Called when the handler reads `log`. Most handlers never do, and creating a child logger takes time. */
  log: () => HandlerLog
  usage: HandlerContext['usage']
  /** Called when the handler reads `agents`. */
  agents: () => HandlerContext['agents']
  /** The contents of the caller's file parts that have a `uri`, by part. */
  fetched?: ReadonlyMap<Part, FetchedFile>
  /** For each part of the newest message, whether its signature was verified. */
  verified?: ReadonlyMap<Part, boolean>
}

export interface FetchedFile {
  bytes: Buffer
  mimeType: string | undefined
}

/** Builds the handler's argument from the task record. */
export function buildContext(parts: ContextParts): HandlerContext {
  const { record } = parts
  const message = newestMessage(record)
  return {
    text: textOf(message.parts),
    data: dataOf(message.parts),
    files: filesOf(message.parts, parts),
    input: parts.input,
    message: { ...message, parts: message.parts.map((part) => inputPart(part, parts.verified?.get(part))) },
    // The handler receives copies, so that changes to them do not affect the stored task.
    history: record.history.map((entry) => ({
      ...entry,
      parts: entry.parts.map((part) => withBytes(part, parts.fetched?.get(part))),
    })),
    references: parts.references.map(referenceOf),
    context: {
      id: record.contextId,
      history: [...statedConversation(record), ...parts.contextHistory].map(referenceOf),
    },
    task: { id: record.id, contextId: record.contextId, starts: record.starts },
    caller: { ...partyOf(senderOf(record)), signed: record.signed === true },
    onBehalfOf: record.delegation && partyOf(record.delegation.subject),
    skillId: parts.skillId,
    acceptedOutputModes: record.acceptedOutputModes,
    signal: parts.signal,
    log: new LazyLog(parts.log),
    usage: parts.usage,
    agents: new LazyAgents(parts.agents),
    ...pauses,
    reply,
  }
}

/**
 * The log of a run, which is opened when the handler writes to it. It is not a getter of the context, because V8 creates
 * a hidden class for each object literal with a getter, and keeps it until the next full garbage collection.
 */
class LazyLog implements HandlerLog {
  readonly #open: () => HandlerLog

  constructor(open: () => HandlerLog) {
    this.#open = open
  }

  debug(...line: Parameters<HandlerLog['debug']>): void {
    this.#open().debug(...line)
  }

  info(...line: Parameters<HandlerLog['info']>): void {
    this.#open().info(...line)
  }

  warn(...line: Parameters<HandlerLog['warn']>): void {
    this.#open().warn(...line)
  }

  error(...line: Parameters<HandlerLog['error']>): void {
    this.#open().error(...line)
  }
}

/** The calls of a run, which are opened when the handler makes the first one. The methods may be detached. */
class LazyAgents implements Agents {
  readonly #open: () => Agents

  constructor(open: () => Agents) {
    this.#open = open
  }

  get children(): Agents['children'] {
    return this.#open().children
  }

  readonly call: Agents['call'] = (...call) => this.#open().call(...call)
  readonly best: Agents['best'] = (...call) => this.#open().best(...call)
  readonly stream: Agents['stream'] = (...call) => this.#open().stream(...call)
}

/** The functions that pause or reject a task. */
export const pauses: Pick<HandlerContext, 'ask' | 'requireAuth' | 'requirePayment' | 'bid' | 'decline'> = {
  ask: (prompt, data) => pause('ask', promptParts(prompt, data)),
  requireAuth: (prompt, data) => pause('auth', promptParts(prompt, data)),
  requirePayment: ({ amount, reason }) => pause('payment', promptParts(reason, { amount, reason })),
  bid: ({ amount, latencyMs, note }) => {
    const offer: JsonObject = { amount }
    if (latencyMs !== undefined) offer['latency_ms'] = latencyMs
    if (note !== undefined) offer['note'] = note
    return pause('bid', promptParts(note, offer))
  },
  decline: (reason) => pause('decline', promptParts(reason)),
}

function promptParts(text: string | undefined, data?: JsonObject): Part[] {
  const parts: Part[] = text === undefined ? [] : [{ kind: 'text', text }]
  if (data !== undefined) parts.push({ kind: 'data', data })
  return parts
}

/** Returns the message that a run answers. When a task starts, the newest message is the caller's. */
export function newestMessage(record: TaskRecord): Message {
  const message = record.history.at(-1)
  if (message === undefined) throw new Error(`task ${record.id} has no message`)
  return message
}

/** Returns the client ID of the party that sent the messages of a task. */
export function senderOf({ owner, delegation }: Pick<TaskRecord, 'owner' | 'delegation'>): string {
  return delegation?.delegate ?? owner
}

function partyOf(id: string): { id: string; did?: string } {
  return id.startsWith('did:') ? { id, did: id } : { id }
}

function referenceOf(task: Task): Reference {
  const parts = answerOf(task)
  return {
    id: task.id,
    state: task.status.state,
    text: textOf(parts),
    artifacts: task.artifacts,
    history: task.history,
    files: filesOf(parts),
  }
}

/** Returns the parts of the artifacts; without artifacts, those of a completed task's message. */
function answerOf({ artifacts, status }: Pick<Task, 'artifacts' | 'status'>): Part[] {
  const isReply = artifacts.length === 0 && status.state === 'completed'
  return isReply ? (status.message?.parts ?? []) : artifacts.flatMap((artifact) => artifact.parts)
}

export function textOf(parts: readonly Part[]): string {
  return parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n')
}

export function dataOf(parts: readonly Part[]): JsonObject {
  const data: JsonObject = {}
  for (const part of parts) if (part.kind === 'data') Object.assign(data, part.data)
  return data
}

function inputPart(part: Part, verified: boolean | undefined): InputPart {
  return verified === undefined ? part : { ...part, verified }
}

/** Returns a file part with the fetched content of its `uri`, which is encoded as base64 when it is read. */
function withBytes(part: Part, fetched: FetchedFile | undefined): Part {
  if (part.kind !== 'file' || fetched === undefined) return part
  const { bytes: content, mimeType } = fetched
  let encoded: string | undefined
  const file: FileContent = {
    ...part.file,
    ...(part.file.mimeType === undefined && mimeType !== undefined && { mimeType }),
    get bytes() {
      encoded ??= content.toString('base64')
      return encoded
    },
  }
  return { ...part, file }
}

type PartFacts = Pick<ContextParts, 'fetched' | 'verified'>

export function filesOf(parts: readonly Part[], { fetched, verified }: PartFacts = {}): InputFile[] {
  return parts.flatMap((part) =>
    part.kind === 'file' ? [inputFile(part.file, fetched?.get(part), verified?.get(part))] : [],
  )
}

/** Decodes the content when it is read. */
function inputFile(
  file: FileContent,
  fetched: FetchedFile | undefined,
  verified: boolean | undefined,
): InputFile {
  let bytes = fetched?.bytes
  return {
    name: file.name,
    mimeType: file.mimeType ?? fetched?.mimeType,
    ...(verified !== undefined && { verified }),
    get bytes() {
      bytes ??= Buffer.from(file.bytes ?? '', 'base64')
      return bytes
    },
    get text() {
      return this.bytes.toString('utf8')
    },
  }
}
