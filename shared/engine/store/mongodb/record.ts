import type { Cursors } from '@parley/kit/database/cursor'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { hashOf, keyText, positionOf } from '@parley/kit/database/keys'
import type { Batches } from '@parley/kit/database/mongodb/batches'
import { insertMissing } from '@parley/kit/database/mongodb/database'
import { type Bound, refuseTooLarge } from '@parley/kit/database/mongodb/layout'
import { LazyPart } from '@parley/wire/codecs/lazy-part'
import type { Part } from '@parley/wire/model/task'
import { isTerminal, type TaskState } from '@parley/wire/model/task'
import type { Binary, Collection, Filter, UpdateFilter } from 'mongodb'
import { type LargePart, LargeParts } from '../large-parts.ts'
import type { TaskOutline, TaskRecord } from '../store.ts'
import { taskKey } from '../webhook-store.ts'

export interface TaskDocument {
  _id: string
  agent_id: string
  task_id: string
  owner: string
  context_id: string
  state: TaskState
  position: string
  /** Time of the status and id, which define the order by status. */
  status_position?: string
  version: number
  /** Number of events; absent in documents written by earlier versions. */
  events?: number
  /** The rest of the record as JSON, with references to large parts. */
  body: string
  holder?: string
  lease_until?: number
  /** Numbers of the starts that lost the task although their process kept running. */
  survived?: number[]
  due_at?: number
  /** Time of the last change, if the task has ended. */
  ended_at?: string
  parts?: PartName[]
}

/** Names a large part by the SHA-256 of its JSON, and counts the documents that it is split into. */
interface PartName {
  hash: string
  pieces: number
  /** Size of the part's JSON; absent in documents written by earlier versions. */
  bytes?: number
}

export interface PartDocument {
  _id: string
  agent_id: string
  /** The `taskKey` of the task that the part belongs to. */
  task: string
  piece: Binary
}

export interface ContextDocument {
  _id: string
  agent_id: string
  owner: string
  /** Time of the newest task and id of the context, which define the order of lists. */
  position: string
  /** Incremented by each new task and each attempt to remove the context. */
  version: number
  created_at: string
  updated_at: string
  /** Id, owner and name of the context as JSON. */
  body: string
  /** The attempt that is removing the context. */
  leaving?: string
}

/** State that the store's operations share. */
export interface MongoContext {
  agentId: string
  tasks: Collection<TaskDocument>
  contexts: Collection<ContextDocument>
  parts: Collection<PartDocument>
  documents: DocumentDatabase
  batches: StoreBatches
  beside: BesideTasks
  largeParts: LargeParts
  cursors: Cursors
  /** Returns milliseconds since 1970. */
  now: () => number
  /** Tasks that are known to be in their context. */
  joined: Set<string>
}

/** The writes that every task needs, which concurrent tasks share. */
export interface StoreBatches {
  newTasks: Batches<TaskDocument, boolean>
  newContexts: Batches<ContextDocument, boolean>
  ends: Batches<TaskEnd, boolean>
}

/** The last change of a task, and the document that it results in. */
export interface TaskEnd {
  _id: string
  filter: Filter<TaskDocument>
  update: UpdateFilter<TaskDocument>
  document: TaskDocument
}

/** Opens a collection by name. */
export type BesideTasks = <T extends { _id: string }>(name: string) => Collection<T>

const mebibyte = 1024 * 1024

/** Leaves room for what follows a caller's message: the start, the agent's response and the end. */
export const messageBound: Bound = { maxBytes: 13 * mebibyte, error: 'InvalidParams' }

/** The size limit for a change to this state. Only a caller's message changes a task to `submitted`. */
export function boundOf(state: TaskState): Bound {
  if (state === 'submitted') return messageBound
  return { maxBytes: (isTerminal(state) ? 15 : 14) * mebibyte, error: 'InvalidAgentResponse' }
}

/** Number of bytes that the name of a large part adds to the document outside the body. */
const partNameBytes = 100
const pieceBytes = 8 * 1024 * 1024
/** If many medium-sized parts make the body too long, parts longer than this are stored separately. */
const whenCrowded = { bodyLength: 4 * 1024 * 1024, parts: new LargeParts(2048) }

type Agent = Pick<MongoContext, 'agentId'>

/** Returns the `_id` of one of this agent's documents for an external id. */
export const idIn = (agent: Agent, id: string) => keyedIn(agent, keyText(id))
/** Returns the `_id` for an id in its stored form. */
export const keyedIn = ({ agentId }: Agent, key: string) => `${agentId}/${key}`

/** Returns the `taskKey` of a task's document. */
export const keyOfDocument = (task: Pick<TaskDocument, 'task_id' | 'owner' | 'position'>) =>
  hashOf(task.task_id, task.owner, createdAtOf(task))

export const createdAtOf = ({ position }: Pick<TaskDocument, 'position'>) =>
  position.slice(0, position.indexOf(' '))

export interface Encoded {
  document: TaskDocument
  parts: PartDocument[]
}

/**
 * @throws ParleyError if the document is too large even without its large parts
 */
export function encodeTask(store: MongoContext, record: TaskRecord, bound: Bound): Encoded {
  const { version, lease, dueAt, survived: _survived, ...rest } = record
  const { agentId, largeParts } = store
  let { body: slim, parts } = largeParts.takeOut(rest)
  let body = JSON.stringify(slim)
  if (body.length > whenCrowded.bodyLength) {
    ;({ body: slim, parts } = whenCrowded.parts.takeOut(rest))
    body = JSON.stringify(slim)
  }
  refuseTooLarge(body, bound, parts.length * partNameBytes)
  const cut = parts.map((part) => piecesOf(store, record, part))
  const document: TaskDocument = {
    _id: idIn(store, record.id),
    agent_id: agentId,
    task_id: keyText(record.id),
    owner: keyText(record.owner),
    context_id: keyText(record.contextId),
    state: record.status.state,
    position: positionOf(record.createdAt, record.id),
    status_position: positionOf(record.status.timestamp, record.id),
    version,
    events: record.events.length,
    body,
  }
  if (lease !== undefined)
    Object.assign(document, { holder: keyText(lease.holder), lease_until: lease.until })
  if (dueAt !== undefined) document.due_at = dueAt
  if (isTerminal(record.status.state)) document.ended_at = keyText(record.updatedAt)
  if (parts.length > 0) {
    document.parts = parts.map(({ hash }, index) => {
      const pieces = cut[index] ?? []
      const bytes = pieces.reduce((sum, { piece }) => sum + (piece as unknown as Buffer).length, 0)
      return { hash, pieces: pieces.length, bytes }
    })
  }
  return { document, parts: cut.flat() }
}

function piecesOf({ agentId }: MongoContext, record: TaskRecord, part: LargePart): PartDocument[] {
  const bytes = Buffer.from(part.json())
  const task = taskKey(record)
  const pieces: PartDocument[] = []
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    const piece = bytes.subarray(from, from + pieceBytes) as unknown as Binary
    pieces.push({ _id: `${agentId}/${task}/${part.hash}/${pieces.length}`, agent_id: agentId, task, piece })
  }
  return pieces
}

/** Saves the pieces in groups, because a message to the server also has a size limit. */
export async function saveParts({ parts }: MongoContext, pieces: PartDocument[]): Promise<void> {
  let group: PartDocument[] = []
  let bytes = 0
  for (const piece of pieces) {
    const size = (piece.piece as unknown as Buffer).length
    if (bytes + size > pieceBytes) {
      await insertMissing(parts, group)
      ;[group, bytes] = [[], 0]
    }
    group.push(piece)
    bytes += size
  }
  await insertMissing(parts, group)
}

/** Returns the record of a document with its large parts; `size` is the approximate length of its JSON. */
export async function decodeTask(
  store: MongoContext,
  document: TaskDocument,
): Promise<{ record: TaskRecord; size: number }> {
  const stored: Body = JSON.parse(document.body)
  const loaded = await loadParts(store, stored, document.parts ?? [])
  const body = loaded.size === 0 ? stored : store.largeParts.putBack(stored, (hash) => loaded.get(hash) ?? '')
  let size = document.body.length
  for (const json of loaded.values()) size += json.length
  return { record: recordOf(document, body), size }
}

type Body = Omit<TaskRecord, 'version' | 'lease' | 'dueAt'>

/** Returns the record of a document and leaves its large parts in the store. */
export function outlineOf(store: MongoContext, document: TaskDocument, withArtifacts = true): TaskOutline {
  const stored: Body = JSON.parse(document.body)
  if (!withArtifacts) stored.artifacts = []
  const names = new Map(document.parts?.map((name) => [name.hash, name]))
  let bytes = document.body.length
  const body = store.largeParts.outline(stored, (hash) => {
    const name = names.get(hash)
    const size = name === undefined ? 0 : sizeOf(name)
    bytes += size
    return new LazyPart(size, async () => {
      const loaded = await loadParts(store, stored, name === undefined ? [] : [name])
      const part: Part = JSON.parse(loaded.get(hash) ?? '')
      return part
    })
  })
  return { task: recordOf(document, body), bytes }
}

/** Returns the approximate size of the whole record. */
export function bytesOf({ body, parts = [] }: TaskDocument): number {
  return parts.reduce((sum, name) => sum + sizeOf(name), body.length)
}

const sizeOf = ({ pieces, bytes }: PartName) => bytes ?? pieces * pieceBytes

function recordOf(document: TaskDocument, body: Body): TaskRecord {
  const record: TaskRecord = { ...body, version: document.version }
  if (document.holder !== undefined) {
    record.lease = { holder: document.holder, until: document.lease_until ?? 0 }
  }
  if (document.due_at !== undefined) record.dueAt = document.due_at
  if (document.survived !== undefined) record.survived = document.survived.length
  return record
}

async function loadParts(
  { agentId, parts }: MongoContext,
  record: { id: string; owner: string; createdAt: string },
  names: PartName[],
): Promise<Map<string, string>> {
  const loaded = new Map<string, string>()
  if (names.length === 0) return loaded
  const prefix = `${agentId}/${taskKey(record)}`
  const ids = (name: PartName) => Array.from({ length: name.pieces }, (_, n) => `${prefix}/${name.hash}/${n}`)
  const found = parts.find({ _id: { $in: names.flatMap(ids) }, agent_id: agentId }, { promoteBuffers: true })
  const pieces = new Map<string, Buffer>()
  for await (const { _id, piece } of found) pieces.set(_id, piece as unknown as Buffer)
  for (const name of names) {
    const all = ids(name).map((id) => pieces.get(id))
    if (all.some((piece) => piece === undefined)) {
      throw new Error(`A large part of task ${record.id} is missing in the store`)
    }
    loaded.set(name.hash, Buffer.concat(all as Buffer[]).toString('utf8'))
  }
  return loaded
}
