import type { ParleyError } from '../errors.ts'
import type { RequestId } from '../jsonrpc/envelope.ts'
import type { AgentCard } from '../model/card.ts'
import type { DeprecationMark } from '../model/deprecation.ts'
import type { StreamItem, TaskEvent } from '../model/event.ts'
import type { Calls, Operation } from '../model/operation.ts'
import type { Part, Task, TaskEnd } from '../model/task.ts'

/**
 * One dialect of the wire: translates between the bytes of clients and the model. Methods, the task engine and webhooks
 * know the model only. A dialect is a folder with the same file names as `parley/` and a line in `dialects.ts`.
 *
 * A writer returns a value for `JSON.stringify`, not text, so that the answer is serialized once and large parts
 * (`LazyPart`) stay in the store until their turn comes.
 */
export interface Codec {
  /** Identifies the dialect in stored records, for example of a webhook; never changes. */
  readonly name: string
  /** Method names, aliases included, by operation. */
  readonly methods: ReadonlyMap<string, MethodName>
  /** Paths that accept JSON-RPC requests of this dialect. */
  readonly rpcPaths: readonly RpcPath[]
  /** Paths of the agent card. */
  readonly cardPaths: readonly string[]
  /**
   * Whether the dialect answers a request. The path is one of `rpcPaths` or `cardPaths`; dialects that share a path differ
   * by headers (a version) or by their method names.
   */
  accepts(request: WireRequest): boolean

  /** @throws ParleyError InvalidParams with `data.issues [{path, message}]`; values of the caller are not repeated */
  readParams<O extends Operation>(operation: O, params: Record<string, unknown>): Calls[O]['params']
  /** The task that a call is about, where the other params are not for the reader. @throws ParleyError InvalidParams */
  readTaskId(params: Record<string, unknown>): string
  /** The negotiation that a message asks of a gateway, unchecked; undefined when it asks none. */
  readQuery(params: Record<string, unknown>): unknown
  /** The rating of `giveFeedback`, 1 to 5. Any other value counts as absent. */
  readRating(params: Record<string, unknown>): number | undefined
  /** Deprecated fields that the params of the method have. */
  deprecations(method: string, params: Record<string, unknown>): DeprecationMark[]

  /** May hold lazy parts, which `writePart` spells once they are loaded. */
  writeResult<O extends Operation>(operation: O, result: Calls[O]['result']): WireResult
  readonly writePart: (part: Part) => unknown
  /** The frames of one stream, in the order of the items. @param id of the request, for dialects whose frames are envelopes */
  openStream(id: RequestId): FrameWriter
  writeError(error: ParleyError): WireError
  writeCard(card: AgentCard): object
  /** The body of a webhook delivery, as JSON. */
  writeWebhook(event: TaskEvent): string
  /** The headers of a webhook delivery. @param token credential of the receiver */
  webhookHeaders(token: string | undefined): Record<string, string>

  // For clients, and for gateways that forward messages of other servers.

  methodOf(operation: Operation): string
  writeParams<O extends keyof ClientParams>(operation: O, params: ClientParams[O]): object
  /** A task of another server within bounds, without its history. Undefined when the JSON is not a task. */
  readTaskOutput(json: unknown): Task | undefined
  /** The task that an answer, or an event of a stream, is about. Undefined when it is not an object. */
  readTaskReference(json: unknown): TaskReference | undefined
  /** How the task of a result ended; undefined while it runs, and for a canceled task. */
  readEnd(result: unknown): TaskEnd | undefined
  /** The same for the last frame of a stream; undefined also when the stream ended before its task. */
  readStreamEnd(frame: unknown): TaskEnd | undefined
  /** The ids of the message in the params of a call to another server. Ids of another type count as absent. */
  readMessageIds(params: unknown): MessageIds
  /** Whether the result says that the call changed something. */
  isSuccess(result: unknown): boolean
  /** Identity and position of an item in a list that is merged with others. */
  readListItem(list: 'listTasks' | 'listContexts', json: unknown): ListItem
}

/** Operations whose params a client writes; the params of other operations come from its caller. */
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

/** Params with a default on the server may be absent. */
type Undefinable<T> = Pick<T, Extract<keyof T, 'taskId'>> & {
  [K in Exclude<keyof T, 'taskId'>]?: T[K] | undefined
}

/** Ids as another server wrote them: of any type. */
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
  /** Creation of a task, last change of a context. */
  at: string
}

/** The operation of a method name. Answers to a deprecated method or param carry the `Deprecation` header. */
export interface MethodName {
  operation: Operation
  deprecated?: DeprecationMark
  /** Deprecated params by their path on the wire, such as `configuration.blocking`. */
  deprecatedParams?: Readonly<Record<string, DeprecationMark>>
}

/** `method` is fixed where the path itself names a method: the body must name the same one. */
export interface RpcPath {
  path: string
  method?: string
}

/** The parts of a request by which its dialect is chosen. */
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

/** One server-sent event: `id` is absent on frames that a client cannot resume from. */
export interface Frame {
  id?: number
  data: unknown
}

export interface FrameWriter<Item = StreamItem> {
  write(item: Item): Frame
  readonly writePart: (part: Part) => unknown
}
