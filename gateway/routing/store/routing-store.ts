import type { Lesson } from '@parley/negotiation/score/lesson'
import type { JsonObject } from '@parley/wire/model/task'

/**
 * A task, a context, an `Idempotency-Key`, a message that is to be paid (its `messageId`), a payment session, or a completed
 * task whose words wait for a rating.
 */
export type RouteKind = 'task' | 'context' | 'key' | 'priced' | 'session' | 'unrated'

/** Where something of a caller lives. */
export interface Route {
  owner: string
  kind: RouteKind
  id: string
  /** Id of the agent's entry. */
  agent: string
  /** The context of a task. */
  context?: string
  /** Milliseconds since 1970. */
  at: number
  /** Who looks for an agent for it, in a shared store: it stands once an agent has taken it (`placement.ts`). */
  placing?: string
  /** Counted words of the message, as long as the task's end has taught nothing. */
  words?: Record<string, number>
  /** Present when the agent is external: the route rests on that agent's own word. */
  claim?: Claim
}

/** What an external agent says it has. A claim expires and never replaces the route to another agent. */
export interface Claim {
  /** Expiry, in milliseconds since 1970. */
  until: number
  /** Until then it counts as verified: no supervised agent has the same. 0: not verified. */
  verifiedUntil: number
}

/** Why an agent was chosen, or none. */
export interface DecisionRecord {
  id: string
  /** Absent: asked without a token; whoever holds the id may read it. */
  owner?: string
  /** Under which a record without an owner counts among the others: a keyed hash of the caller's address. */
  holder?: string
  /** Milliseconds since 1970. */
  at: number
  /** As `GET /negotiations/{id}` shows it. */
  body: JsonObject
}

/**
 * What the gateway remembers of its routing, shared by all its replicas. A resolved promise means that the change is
 * durable. The owner is an argument of every question about a route: another's is not there.
 */
export interface RoutingStore {
  /** Other gateways write here too. */
  readonly shared: boolean
  find(owner: string, kind: RouteKind, id: string): Promise<Route | undefined>
  /**
   * New ones, or the same ones anew; of a crash in between may come that the last ones are missing. A route with a claim is
   * left out where there is a route to another agent.
   */
  save(routes: readonly Route[]): Promise<void>
  /** Sets `claim.verifiedUntil` of the route, unless it leads to another agent by now or has no claim. */
  verifyClaim(route: Route, verifiedUntil: number): Promise<void>
  /** The one that stands from now on: this one, or the one that was there before. Of many at once one alone stands. */
  claim(route: Route): Promise<Route>
  /**
   * Puts `after`, or nothing, in the place of a claimed route, unless it is at another agent by now, or others place it
   * or no longer do; false then.
   */
  exchange(before: Route, after: Route | undefined): Promise<boolean>
  remove(owner: string, kind: RouteKind, id: string): Promise<void>
  /** The route of a context and those of its tasks. */
  removeContext(owner: string, context: string): Promise<void>
  /** Agents at which the caller has something, the newest first. */
  agentsOf(owner: string, limit: number): Promise<string[]>
  /** Of these tasks those of the agent whose words wait. */
  waiting(agent: string, taskIds: readonly string[]): Promise<Route[]>
  /** The words of a task that wait; they no longer do. Given to exactly one caller. */
  takeWords(owner: string, taskId: string): Promise<Record<string, number> | undefined>

  /** @param soon resolved, it can be read here; it is durable a moment later, and nobody waits for that */
  saveDecision(record: DecisionRecord, soon?: boolean): Promise<void>
  findDecision(id: string): Promise<DecisionRecord | undefined>

  lessons(): Promise<Lesson[]>
  findTrainingExample(context: string, agent: string): Promise<Lesson | undefined>
  /** Replaces the one of the same context and agent. */
  saveTrainingExample(lesson: Lesson): Promise<void>
  removeTrainingExample(context: string, agent: string): Promise<void>
  removeTrainingExamplesOf(context: string): Promise<void>
  /** What came, and which contexts were forgotten, since this was asked last, `lessons` at first; own changes may be in it. */
  trainingExampleChanges(): Promise<{ learned: Lesson[]; forgotten: string[] }>

  /** 32 bytes, made with the store: seals cursors. */
  cursorKey(): Promise<Uint8Array>
  /**
   * Removes what is older than its time (`priced` and `unrated` as keys, `session` as routes; routes with a claim that expired before
   * `claims`), and the oldest of what are too many, at most `limit` of each; returns how many.
   * Of too many decisions those of the caller, or of the anonymous address, that has the most.
   */
  removeOld(
    before: { routes: number; claims: number; keys: number; decisions: number; lessons: number },
    limit: number,
  ): Promise<number>
}
