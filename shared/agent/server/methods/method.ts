import type { EventBus } from '@parley/engine/events/event-bus'
import type { Payments } from '@parley/engine/payments/payments'
import type { Scheduler } from '@parley/engine/queue/scheduler'
import type { Store } from '@parley/engine/store/store'
import type { TaskEngine } from '@parley/engine/tasks/engine'
import type { WorkFigures } from '@parley/engine/tasks/work-figures'
import type { Registrations } from '@parley/engine/webhooks/registrations'
import type { Caller, Scope } from '@parley/kit/auth/caller'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import type { DeprecationMark } from '@parley/wire/model/deprecation'
import type { Agent } from '../../author/agent.ts'
import type { TaskRunner } from '../runner/run-task.ts'
import type { ForeignTasks } from './foreign-task.ts'

/** What the methods of an agent stand on. */
export interface Services {
  agent: Agent
  store: Store
  engine: TaskEngine
  runner: TaskRunner
  scheduler: Scheduler
  bus: EventBus
  figures: WorkFigures
  /** Absent: this agent has no push notifications. */
  registrations: Registrations | undefined
  /** Absent: no gateway, so every task is of this agent. */
  foreignTasks?: ForeignTasks
  /** Absent: nothing of this agent has a price. */
  payments?: Payments | undefined
  taskQueueMax: number
  /** The address that clients use. */
  baseUrl: () => string
  did: string
}

/** One call of one method. */
export interface Call {
  caller: Caller
  params: Record<string, unknown>
  /** Request headers, lower case. */
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The address that the caller used: the gateway's, where the call came through one that is trusted. */
  baseUrl: () => string
  /** SHA-256 of method and params, made when asked for. */
  bodyHash: () => string
  /**
   * For what `takesSignature`: after everything that may refuse the call, before the first write. Where signatures are
   * required each counts once, and one that was refused is not spent. Again in the same call it does nothing.
   * @throws ParleyError InvalidTokenSignature `replayed`
   */
  takeSignature: () => Promise<void>
  /**
   * Reserves memory for an answer of at least so many bytes. To be called before anything large is read and before the first
   * write.
   * @throws ParleyError TooManyRequests, Unavailable when the caller, or all callers, have too many bytes unread
   */
  reserve: (bytes: number) => void
  /** A further claim of the same caller, for data held in addition to the answer. The code that opens it disposes it. */
  openClaim: () => AnswerClaim
  /** Aborted when the caller leaves. */
  signal: AbortSignal
  log: Log
}

/** What a method answers: a result, perhaps with headers, or a stream of frames. Both may hold lazy parts. */
export type Answer =
  | { result: unknown; headers?: Record<string, string> }
  | { frames: AsyncIterable<Frame>; headers?: Record<string, string> }

/** One server-sent event. Only numbered ones carry an id. */
export interface Frame {
  id?: number
  data: unknown
}

export interface Method {
  scope: Scope
  /** It takes the signature of the call itself; of every other one that writes it is taken before `run`. */
  takesSignature?: true
  run: (services: Services, call: Call) => Promise<Answer>
  /** Its answers carry the `Deprecation` header. */
  deprecated?: DeprecationMark
  /** Params, by their path as they are written on the wire: answers to calls that have one carry the header. */
  deprecatedParams?: Readonly<Record<string, DeprecationMark>>
}
