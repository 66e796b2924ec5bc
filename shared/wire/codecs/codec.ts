import type { z } from 'zod'
import type { ParleyError } from '../errors.ts'
import type { RequestId } from '../jsonrpc/envelope.ts'
import type { PushConfigInput, SendMessage } from '../model/call.ts'
import type { AgentCard } from '../model/card.ts'
import type { DeprecationMark } from '../model/deprecation.ts'
import type { StreamItem, TaskEvent } from '../model/event.ts'
import type { Ids } from '../model/ids.ts'
import type { Calls, Operation } from '../model/operation.ts'
import type {
  Artifact,
  ContextRef,
  Message,
  Part,
  Task,
  TaskEnd,
  TaskState,
  TaskStatus,
} from '../model/task.ts'

/**
 * A wire dialect translates between the JSON of clients and the model. Methods, the task engine and webhooks use the
 * model only. To add a dialect, add a folder with the same file names as `parley/` and a line in `dialects.ts`.
 *
 * Writers return values for `JSON.stringify` rather than text, so that a response is serialized once and large parts
 * (`LazyPart`) are loaded one at a time while it is sent.
 */
export interface Codec {
  /** Identifies the dialect in stored records such as webhooks; it never changes. */
  readonly name: string
  /** The protocol and its version, for people. */
  readonly title: string
  /** The version that clients state in their requests (`versionHeaders`); undefined for dialects without this header. */
  readonly version: string | undefined
  /** The names of the headers that only some dialects have. */
  readonly headers: { readonly request: readonly string[]; readonly answer: readonly string[] }
  /** The operation of each method name, including aliases. A dialect may lack operations. */
  readonly methods: ReadonlyMap<string, MethodName>
  /** Paths that accept JSON-RPC requests of this dialect. */
  readonly rpcPaths: readonly RpcPath[]
  /** Paths of the agent card. */
  readonly cardPaths: readonly string[]
  /**
   * Whether the dialect answers a request. The path is one of `rpcPaths` or `cardPaths`. Dialects that share a path differ
   * by headers (a version) or by their method names.
   */
  accepts(request: WireRequest): boolean
  /**
   * Checks the version that the client selects, once the dialect has been determined. Returns headers for the answer.
   * @throws ParleyError VersionNotSupported
   */
  negotiate(request: WireRequest): Record<string, string>
  /** Returns the URIs of the extensions that the client activates. */
  readExtensions(headers: WireRequest['headers']): string[]
  /** Returns the headers of an answer that name the activated extensions. */
  writeExtensions(uris: readonly string[]): Record<string, string>
  /** Whether a request without an ID is answered, with a null ID, and an object is an unknown method. Default false. */
  readonly lenientRequests?: boolean
  /** Whether an error of a streaming method with the status 200 is sent as the only frame of a stream. Default false. */
  readonly framesErrors?: boolean
  /** Paths without a JSON-RPC envelope; undefined if the dialect has no such paths. */
  readonly rest: RestBinding | undefined

  /**
   * @param ids converts the IDs that the caller chose
   * @throws ParleyError InvalidParams with `data.issues [{path, message}]`; the issues do not repeat the caller's values
   */
  readParams<O extends Operation>(operation: O, params: Record<string, unknown>, ids: Ids): Calls[O]['params']
  /** The schema of the JSON that `readParams` reads. @throws ParleyError UnsupportedOperation */
  paramsSchema(operation: Operation): z.ZodType
  /** Reads only the task ID; a gateway uses it to forward the other params unread. @throws ParleyError InvalidParams */
  readTaskId(params: Record<string, unknown>): string
  /**
   * Returns the slug of the agent that the params name at a shared address; undefined if they name none.
   * @throws ParleyError InvalidParams
   */
  readTenant(params: Record<string, unknown>): string | undefined
  /**
   * Returns the negotiation fields that a message may carry for a gateway, unvalidated; undefined if there are no such fields.
   */
  readQuery(params: Record<string, unknown>): unknown
  /** Returns the rating of `giveFeedback`, from 1 to 5. Any other value counts as absent. */
  readRating(params: Record<string, unknown>): number | undefined
  /** Returns the deprecation marks of the method and of the params in use. */
  deprecations(method: string, params: Record<string, unknown>): DeprecationMark[]

  /** The result may contain lazy parts; `writePart` writes each part when it is loaded. */
  writeResult<O extends Operation>(operation: O, result: Calls[O]['result']): WireResult
  readonly writePart: (part: Part) => unknown
  /**
   * Creates the writer of one stream, which receives the items in order.
   * @param id the request's ID, for dialects that send each frame as a JSON-RPC response
   */
  openStream(id: RequestId): FrameWriter
  writeError(error: ParleyError): WireError
  /** @param path the path at which the card was requested, if it is one of `cardPaths`, which may differ in their form */
  writeCard(card: AgentCard, path?: string): object
  /** The body of a webhook delivery, as JSON. @param task the task, at the event or later */
  writeWebhook(event: TaskEvent, task: Task): string
  webhookHeaders(config: Pick<PushConfigInput, 'token' | 'credentials'>): Record<string, string>

  // The following readers are for clients and for gateways that forward messages from other servers.

  /** @throws ParleyError UnsupportedOperation if the dialect has no method for the operation */
  methodOf(operation: Operation): string
  writeParams<O extends keyof ClientParams>(operation: O, params: ClientParams[O]): object
  /** Reads another server's task without its history, and checks its size. Returns undefined if the JSON is not a task. */
  readTaskOutput(json: unknown): Task | undefined
  /** Like `readTaskOutput`, with the history. */
  readTask(json: unknown): Task | undefined
  /** Reads the result of `sendMessage`; undefined if it is neither a task nor a message. */
  readSendResult(result: unknown): SendAnswer | undefined
  /**
   * Reads the data of a stream's frame, with or without a JSON-RPC envelope, or the body of a webhook delivery. Returns
   * undefined if it is none of these.
   */
  readFrame(data: unknown): ReadFrame | undefined
  /** Reads the error of an answer with its name in this server's table; undefined if the answer is not an error. */
  readError(answer: unknown): ParleyError | undefined
  /**
   * Returns the IDs in a result or in a stream frame, converted with `ids`; undefined if the JSON is not an object.
   */
  readTaskReference(json: unknown, ids: Ids): TaskReference | undefined
  /** Returns how the task in a result ended; undefined for a running or canceled task. */
  readEnd(result: unknown): TaskEnd | undefined
  /** Returns how the task ended according to the last stream frame; undefined if the stream ended before the task did. */
  readStreamEnd(frame: unknown): TaskEnd | undefined
  /**
   * Returns the message's IDs from the params of a call to another server, converted with `ids`. IDs of any other type count
   * as absent.
   */
  readMessageIds(params: unknown, ids: Ids): MessageIds
  /** Returns the IDs of the tasks that the message in the params refers to, unvalidated except for their type. */
  readReferences(params: unknown): string[]
  /** Returns the result of `sendMessage` of another server with the tasks of the split request in its metadata. */
  writeChain(result: unknown, chain: readonly ChainLink[]): unknown
  /** Whether a result without a task, such as that of `clearContext`, reports success. */
  isSuccess(result: unknown): boolean
  /**
   * Returns the items of a list that an agent returned, which a gateway merges with the lists of other agents; undefined if the
   * JSON is not a list.
   */
  readList(list: ListOperation, result: unknown, headers: WireRequest['headers']): ReadList | undefined
  /** Writes the result of a merged list. Its items are those of `readList`. */
  writeMergedList(list: ListOperation, items: unknown[], page: MergedPage): WireResult
  /** Returns the cursor in the params of a list, unvalidated. */
  readCursor(params: Record<string, unknown>): unknown
  /** Returns the params of a list with another cursor; without one, of the first page. */
  writeCursor(params: Record<string, unknown>, cursor: string | undefined): Record<string, unknown>
}

/** The operations whose params the client writes itself; for other operations, the client's caller supplies them. */
export type ClientParams = { [O in 'sendMessage' | 'streamMessage']: SendMessage } & {
  [O in
    | 'getTask'
    | 'listTasks'
    | 'cancelTask'
    | 'listTaskEvents'
    | 'resubscribe'
    | 'setPushConfig'
    | 'getPushConfig'
    | 'listPushConfigs'
    | 'deletePushConfig']: Undefinable<Calls[O]['params']>
}

/** Params that have a default on the server may be absent. */
type Undefinable<T> = Pick<T, Extract<keyof T, 'taskId'>> & {
  [K in Exclude<keyof T, 'taskId'>]?: T[K] | undefined
}

/**
 * The answer of another server to a message. The readers do not convert its IDs. In a message, an absent ID is an empty
 * string. A status without a time has the time at which it is read.
 */
export type SendAnswer = { kind: 'task'; task: Task } | { kind: 'message'; message: Message }

/** A frame of another server's stream, or its delivery to a webhook. */
export type ReadFrame =
  | SendAnswer
  | ({ kind: 'status-update'; taskId: string; status: TaskStatus } & ContextRef)
  | ReadArtifactFrame
  | { kind: 'error'; error: ParleyError }

export interface ReadArtifactFrame extends ContextRef {
  kind: 'artifact-update'
  taskId: string
  artifact: Artifact
  /** Whether the parts belong after those that the artifact already has. */
  append: boolean
  /** False while more parts of the artifact follow. */
  lastChunk: boolean
}

/** IDs as another server wrote them, so they may have any type. */
export interface TaskReference {
  taskId: unknown
  contextId: unknown
}

export interface MessageIds {
  taskId?: string | undefined
  contextId?: string | undefined
}

/** A part of a request that a gateway has split (spec/gateway-routing.md#several-needs). */
export interface ChainLink {
  /** The position of the part in the request, from 1. */
  position: number
  /** The slug of the agent that has received the part, or is expected to. Absent if there is none. */
  agent?: string | undefined
  /** Absent if no task is known. */
  taskId?: string | undefined
  /** `refused`: the part has no task, because it was answered with an error. */
  state: TaskState | 'refused' | 'not-started'
}

/** The position of an item in a list, which begins with the newest. */
export interface ListItem {
  id: string
  /** The time by which the list is sorted. */
  at: string
}

/** The paths of a dialect on which the HTTP method and the path select the operation. */
export interface RestBinding {
  routes: readonly RestRoute[]
  /** Whether errors at a path that is not a route, such as a wrong path, have the form of this binding. */
  covers(request: WireRequest): boolean
  /** The media type of answers. Requests may also be `application/json`. */
  mediaType: string
  writeError(error: ParleyError): { status: number; body: unknown }
  openStream(): FrameWriter
}

export interface RestRoute {
  verb: 'GET' | 'POST' | 'DELETE'
  /** A path pattern of Fastify. */
  path: string
  operation: Operation
  /** Returns the params as in a JSON-RPC call. @throws ParleyError InvalidParams */
  params(request: RestRequest): Record<string, unknown>
}

export interface RestRequest {
  path: Readonly<Record<string, string>>
  query: Readonly<Record<string, unknown>>
  /** Undefined if there is none. */
  body: unknown
}

export type ListOperation = 'listTasks' | 'listContexts'

export interface MergedPage {
  limit: number
  nextCursor?: string | undefined
  /** The sum of the totals of the agents. */
  total: number
}

export interface ReadList {
  items: (ListItem & { json: unknown })[]
  nextCursor?: string | undefined
  total?: number | undefined
}

/** The operation that a method name selects. Answers to a deprecated method or param carry the `Deprecation` header. */
export interface MethodName {
  operation: Operation
  deprecated?: DeprecationMark
  /** Deprecated params, keyed by their path on the wire, such as `configuration.blocking`. */
  deprecatedParams?: Readonly<Record<string, DeprecationMark>>
}

/** `method` is set if the path itself names a method; the body must then name the same one. */
export interface RpcPath {
  path: string
  method?: string
}

/** The parts of a request that determine its dialect. */
export interface WireRequest {
  path: string
  /** The query string, which may name a version. */
  query?: string | undefined
  /** Lower-case names. */
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** Undefined until the body has been read. */
  method?: string
}

export interface WireResult {
  /** The `result` of the JSON-RPC answer, for `JSON.stringify`. */
  json: unknown
  /** Added to the HTTP response. */
  headers?: Record<string, string> | undefined
}

/** The HTTP status and the JSON-RPC error of a failed call. */
export interface WireError {
  status: number
  code: number
  message: string
  data: unknown
}

/** One server-sent event. `id` is absent on frames that a client cannot resume from. */
export interface Frame {
  id?: number
  data: unknown
}

export interface FrameWriter<Item = StreamItem> {
  write(item: Item): Frame
  readonly writePart: (part: Part) => unknown
}
