import type { ParleyError } from '../errors.ts'
import type { RequestId } from '../jsonrpc/envelope.ts'
import type { AgentCard } from '../model/card.ts'
import type { DeprecationMark } from '../model/deprecation.ts'
import type { StreamItem, TaskEvent } from '../model/event.ts'
import type { Calls, Operation } from '../model/operation.ts'
import type { Part, Task, TaskEnd } from '../model/task.ts'

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
  /** The operation of each method name, including aliases. */
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

  /** @throws ParleyError InvalidParams with `data.issues [{path, message}]`; the issues do not repeat the caller's values */
  readParams<O extends Operation>(operation: O, params: Record<string, unknown>): Calls[O]['params']
  /** Reads only the task ID; a gateway uses it to forward the other params unread. @throws ParleyError InvalidParams */
  readTaskId(params: Record<string, unknown>): string
  /** Returns the negotiation fields that a message may carry for a gateway, unvalidated; undefined if it has none. */
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
  writeCard(card: AgentCard): object
  /** The body of a webhook delivery, as JSON. */
  writeWebhook(event: TaskEvent): string
  /** The headers of a webhook delivery. @param token the bearer token that the receiver expects */
  webhookHeaders(token: string | undefined): Record<string, string>

  // The following readers are for clients and for gateways that forward messages from other servers.

  methodOf(operation: Operation): string
  writeParams<O extends keyof ClientParams>(operation: O, params: ClientParams[O]): object
  /** Reads another server's task without its history, and checks its size. Returns undefined if the JSON is not a task. */
  readTaskOutput(json: unknown): Task | undefined
  /** Returns the IDs in a result or in a stream frame; undefined if the JSON is not an object. */
  readTaskReference(json: unknown): TaskReference | undefined
  /** Returns how the task in a result ended; undefined for a running or canceled task. */
  readEnd(result: unknown): TaskEnd | undefined
  /** Returns how the task ended according to the last stream frame; undefined if the stream ended before the task did. */
  readStreamEnd(frame: unknown): TaskEnd | undefined
  /** Returns the message's IDs from the params of a call to another server. IDs of any other type count as absent. */
  readMessageIds(params: unknown): MessageIds
  /** Returns the IDs of the tasks that the message in the params refers to, unvalidated except for their type. */
  readReferences(params: unknown): string[]
  /** Whether a result without a task, such as that of `clearContext`, reports success. */
  isSuccess(result: unknown): boolean
  /** Returns the ID and the sort key of an item, used to merge the lists of several agents. */
  readListItem(list: 'listTasks' | 'listContexts', json: unknown): ListItem
}

/** The operations whose params the client writes itself; for other operations, the client's caller supplies them. */
export type ClientParams = {
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

/** IDs as another server wrote them, so they may have any type. */
export interface TaskReference {
  taskId: unknown
  contextId: unknown
}

export interface MessageIds {
  taskId?: string | undefined
  contextId?: string | undefined
}

export interface ListItem {
  id: string
  /** When the task was created, or when the context last changed. */
  at: string
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
