import type { EventBus } from '@parley/engine/events/event-bus'
import type { Payments } from '@parley/engine/payments/payments'
import type { Scheduler } from '@parley/engine/queue/scheduler'
import type { Store } from '@parley/engine/store/store'
import type { TaskEngine } from '@parley/engine/tasks/engine'
import type { WorkFigures } from '@parley/engine/tasks/work-figures'
import type { Registrations } from '@parley/engine/webhooks/registrations'
import type { Caller } from '@parley/kit/auth/caller'
import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import type { Calls } from '@parley/wire/model/call'
import type { StreamItem } from '@parley/wire/model/event'
import type { Operation } from '@parley/wire/model/operation'
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

/** One call of one operation. */
export interface Call<Params = unknown> {
  caller: Caller
  /** Reads the params in the dialect of the caller. @throws ParleyError InvalidParams */
  params: () => Params
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

/** A result, optionally with headers, or the items of a stream. Both may hold lazy parts. */
export type Answer<Result = unknown> =
  | { result: Result; headers?: Record<string, string> }
  | { items: AsyncIterable<StreamItem>; headers?: Record<string, string> }

/** How an operation runs; its scope is a column of `operations`. */
export interface Method<O extends Operation> {
  /** The method takes the signature of the call itself. Of other operations that write, it is taken before `run`. */
  takesSignature?: true
  run: (services: Services, call: Call<Calls[O]['params']>) => Promise<Answer<Calls[O]['result']>>
}

/** The type of a method's `run`. */
export type Run<O extends Operation> = Method<O>['run']
