import type { EventBus } from '@parley/engine/events/event-bus'
import type { Payments } from '@parley/engine/payments/payments'
import type { Scheduler } from '@parley/engine/queue/scheduler'
import type { Store } from '@parley/engine/store/store'
import type { TaskEngine } from '@parley/engine/tasks/engine'
import type { UsageRollup } from '@parley/engine/tasks/usage-rollup'
import type { WorkStats } from '@parley/engine/tasks/work-stats'
import type { Registrations } from '@parley/engine/webhooks/registrations'
import type { Caller } from '@parley/kit/auth/caller'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import type { StreamItem } from '@parley/wire/model/event'
import type { Calls, Operation } from '@parley/wire/model/operation'
import type { Agent } from '../../author/agent.ts'
import type { AuthoritySeal } from '../delegation/authority-seal.ts'
import type { TaskRunner } from '../runner/run-task.ts'
import type { ForeignTasks } from './foreign-task.ts'

/** The parts of an agent server that its methods use. */
export interface Services {
  agent: Agent
  store: Store
  engine: TaskEngine
  runner: TaskRunner
  scheduler: Scheduler
  bus: EventBus
  figures: WorkStats
  /** Undefined if this agent has no push notifications. */
  registrations: Registrations | undefined
  /** Reads other agents' tasks. Absent without a gateway. */
  foreignTasks?: ForeignTasks
  /** Encrypts the token of a message, so that the task can call other agents. Absent without a gateway. */
  authority?: Pick<AuthoritySeal, 'seal'> | undefined
  /** Absent for an agent without prices. */
  payments?: Payments | undefined
  /** The usage of tasks since the last write, which `flush` stores. */
  usage: Pick<UsageRollup, 'flush'>
  /** TASK_QUEUE_MAX, the number of tasks that may wait. */
  taskQueueMax: number
  /** How long a send that waits for its task may wait, in milliseconds. */
  sendWaitMaxMs: number
  /** Aborted when the server answers every waiting call, because it stops. */
  stopping: AbortSignal
  /** The address that clients use. */
  baseUrl: () => string
  did: string
  /** Signs a card with the key of `did`. */
  signCard: (card: object) => object
}

/** One call of one operation. */
export interface Call<Params = unknown> {
  caller: Caller
  /** Reads the params in the caller's dialect. @throws ParleyError InvalidParams */
  params: () => Params
  /** The request headers, with lower-case names. */
  headers: Readonly<Record<string, string | string[] | undefined>>
  /** The URIs of the extensions that the caller activates and the card lists. */
  extensions: readonly string[]
  /** The address that the caller used, which is the gateway's if a trusted gateway forwarded the call. */
  baseUrl: () => string
  /** SHA-256 of method and params, in base64url. */
  bodyHash: () => string
  /**
   * If signatures are required, marks the request's signature as used, so that it is accepted once. Call it after all checks
   * and before the first write, so that a refused request can be repeated. Further calls have no effect.
   * @throws ParleyError InvalidTokenSignature `replayed`
   */
  takeSignature: () => Promise<void>
  /**
   * Reserves memory for an answer of at least this size. Call it before reading anything large and before the first write.
   * @throws ParleyError TooManyRequests when the caller, Unavailable when all callers together, have too many unread bytes
   */
  reserve: (bytes: number) => void
  /** Opens another claim for the same caller, for memory in addition to the answer. The method that opens it must dispose it. */
  openClaim: () => AnswerClaim
  /**
   * Aborted when the caller disconnects. This is a function and not a getter, because V8 creates a hidden class for each
   * object literal with a getter, and keeps it until the next full garbage collection.
   */
  signal: () => AbortSignal
  log: () => Log
}

/** A result or the items of a stream, optionally with headers. Both may contain lazy parts. */
export type Answer<Result = unknown> =
  | { result: Result; headers?: Record<string, string> }
  | { items: AsyncIterable<StreamItem>; headers?: Record<string, string> }

/** The implementation of an operation. Its scope is in the table `operations`. */
export interface Method<O extends Operation> {
  /** Set if the method calls `takeSignature` itself. For other write operations, the dispatcher calls it before `run`. */
  takesSignature?: true
  run: (services: Services, call: Call<Calls[O]['params']>) => Promise<Answer<Calls[O]['result']>>
}

/** The function that runs an operation. */
export type Run<O extends Operation> = Method<O>['run']
