import type { TaskFeatures, TrainingExample } from '@parley/negotiation/score/training-example'
import type { JsonObject } from '@parley/wire/model/task'

/**
 * A task, a context, an `Idempotency-Key`, a message that requires a payment (its `messageId`), a payment session, or
 * a completed task whose words are kept until it is rated.
 */
export type RouteKind = 'task' | 'context' | 'key' | 'priced' | 'session' | 'unrated'

/** Maps a caller's id to the agent that has the identified object. */
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
  /** In a shared store, the gateway that is choosing an agent. The route is final once this is absent (`RouteClaims`). */
  placing?: string
  /** Set with `placing` if the agent answers once the task has ended or paused, so that others do not wait for the answer. */
  isBlocking?: true
  /** The message's counted words, kept until the task's outcome is recorded. */
  words?: Record<string, number>
  /** Present if the agent is external, because the route then rests only on that agent's response. */
  claim?: Claim
}

/** An external agent's claim to have an id. A claim expires and never replaces the route to another agent. */
export interface Claim {
  /** Expiry, in milliseconds since 1970. */
  until: number
  /** Until when the claim counts as verified, meaning that no supervised agent has the same id. 0 means not verified. */
  verifiedUntil: number
}

/** Explains why an agent, or none, was chosen. */
export interface DecisionRecord {
  id: string
  /** Absent for a request without a token, for which the id alone grants access to the record. */
  owner?: string
  /** A keyed hash of the caller's address, for the quota of a record without an owner. */
  holder?: string
  /** Milliseconds since 1970. */
  at: number
  /** The response of `GET /negotiations/{id}`. */
  body: JsonObject
  /** Task in the response of the agent that received the message. */
  task?: string
  /** Absent in records of earlier versions. */
  summary?: DecisionSummary
  /** Oldest first. Absent if there are none. */
  verdicts?: Verdict[]
  /**
   * The features from which a verdict about the decision makes examples, until the context is cleared. Never part of a response.
   * Absent if there are none, or with ROUTE_LEARNING=no.
   */
  features?: TaskFeatures
  /** Key of the message's context (`FeedbackRecorder.contextKey`), with which the features are removed. */
  context?: string
}

/** The part of a decision that lists show, stored apart from the record, so that a list does not parse whole records. */
export interface DecisionSummary {
  /** `answered`: a negotiation request without a message; `none`: no agent was good enough. */
  outcome: 'accepted' | 'rejected' | 'none' | 'answered'
  method: string
  /** Slug. */
  chosen?: string
  score?: number
  runnerUp?: { agent: string; score: number }
  candidatesTotal: number
  excludedTotal: number
  traceId?: string
  /** Beginning of the text. Only stored if operators may read texts. */
  text?: string
  /** Names and reasons in lower case, for searches. */
  words: string
}

/** A person's judgement of a decision. */
export interface Verdict {
  verdict: 'right' | 'wrong'
  rightAgent?: string
  comment?: string
  /** Client id. */
  by: string
  /** Milliseconds since 1970. */
  at: number
}

/** Above this number of sentence vectors, those that were used least recently are removed. */
export const sentenceVectorsMax = 200_000

/** Above this number, a decision loses its oldest verdicts. */
const verdictsMax = 50

/** Adds a verdict, which replaces the earlier one of the same person. */
export function withVerdict(verdicts: readonly Verdict[], added: Verdict): Verdict[] {
  return [...verdicts.filter(({ by }) => by !== added.by), added].slice(-verdictsMax)
}

/** A decision in a list, without its body if it has a summary. */
export type ListedDecision = Omit<DecisionRecord, 'holder' | 'body' | 'features' | 'context'> & {
  body?: JsonObject
}

export interface DecisionQuery {
  owner?: string | undefined
  task?: string | undefined
  /** Bounds in milliseconds since 1970, both inclusive. */
  since: number
  until: number
  /** Number of decisions of the millisecond `until` that an earlier page has shown. */
  skip: number
  limit: number
}

/** The tasks of external agents. Times are those until which the claims count, in milliseconds since 1970. */
export interface ClaimedTasksQuery {
  owner?: string
  /** Id of the agent's entry. */
  agent?: string
  id?: string
  from?: number
  /** Exclusive. */
  to?: number
  limit: number
}

/** Changes of the training examples by all gateways. */
export interface TrainingExampleChanges {
  learned: TrainingExample[]
  /** Contexts from which the examples were removed. */
  forgotten: string[]
  /** Ids of agents of which all examples, or those of one caller, were removed: read what is left of them. */
  forgottenOf: string[]
}

/**
 * Stores routes, decisions, training examples and sentence vectors for all gateways. A resolved promise means that the change is
 * durable. Every query for a route takes the owner, because another owner's route is reported as not found.
 */
export interface RoutingStore {
  /** Whether other gateways use the same store. */
  readonly shared: boolean
  find(owner: string, kind: RouteKind, id: string): Promise<Route | undefined>
  /**
   * Inserts or replaces the routes in order; a crash may lose the last ones. A route with a claim is skipped if a
   * route to another agent exists.
   * @param soon as for `saveDecision`
   */
  save(routes: readonly Route[], soon?: boolean): Promise<void>
  /**
   * Like `save`, for routes without a claim that querying the agents can restore, or that need not survive a crash. They are
   * stored with the next ones, within a fraction of a second; reads see them immediately, and the promise resolves when they are
   * written. A crash before that loses them. A shared store writes them immediately, and reads see them afterwards.
   */
  queueRoutes(routes: readonly Route[]): Promise<void>
  /** Sets `claim.verifiedUntil` of the route, unless the route now leads to another agent or has no claim. */
  verifyClaim(route: Route, verifiedUntil: number): Promise<void>
  /** Inserts the route if absent and returns the stored one. Exactly one of several concurrent calls inserts its route. */
  claim(route: Route): Promise<Route>
  /** Replaces a claimed route, or removes it without `after`. Returns false if the stored route has changed since. */
  exchange(before: Route, after: Route | undefined): Promise<boolean>
  remove(owner: string, kind: RouteKind, id: string): Promise<void>
  /** Removes the route of a context and those of its tasks. */
  removeContext(owner: string, context: string): Promise<void>
  /**
   * Records that the agent may have tasks of the owner, before their routes are known. The record survives the process; a failure of
   * the machine may lose it.
   */
  saveUse(owner: string, agent: string): Promise<void>
  /** Agents that have tasks of the owner, most recently used first. */
  agentsOf(owner: string, limit: number): Promise<string[]>
  /** The routes of tasks with a claim, those with the latest claim first. */
  claimedTasks(query: ClaimedTasksQuery): Promise<Route[]>
  /** The routes among these tasks of the agent that still have words. */
  waiting(agent: string, taskIds: readonly string[]): Promise<Route[]>
  /** Removes and returns a task's words. Exactly one of several concurrent calls gets the words. */
  takeWords(owner: string, taskId: string): Promise<Record<string, number> | undefined>

  /** @param soon whether to resolve once this process can read the record, shortly before it becomes durable */
  saveDecision(record: DecisionRecord, soon?: boolean): Promise<void>
  /**
   * Stores the record with the next ones, within a fraction of a second. Reads see the record immediately, and the promise resolves when
   * the record is written. A crash before that loses the record. A shared store writes it immediately, and reads see it afterwards.
   */
  queueDecision(record: DecisionRecord): Promise<void>
  findDecision(id: string): Promise<DecisionRecord | undefined>
  /** Newest first. */
  listDecisions(query: DecisionQuery): Promise<ListedDecision[]>
  /** Adds a verdict (`withVerdict`). Returns false if there is no such decision. */
  addVerdict(id: string, verdict: Verdict): Promise<boolean>

  /** The features of the message with which a task began. Undefined if its decision has none, or is not stored any more. */
  featuresOfTask(owner: string, task: string): Promise<TaskFeatures | undefined>
  /** Removes the features of all decisions with this context key. */
  removeDecisionFeatures(context: string): Promise<void>

  trainingExamples(): Promise<TrainingExample[]>
  /** The examples of one agent, oldest first. */
  trainingExamplesOf(agent: string): Promise<TrainingExample[]>
  findTrainingExample(context: string, agent: string): Promise<TrainingExample | undefined>
  /** Replaces the example of the same context and agent. */
  saveTrainingExample(example: TrainingExample): Promise<void>
  removeTrainingExample(context: string, agent: string): Promise<void>
  /** Removes the examples of a context, and those that are removed with it (`removedWith`). Returns their contexts. */
  removeTrainingExamplesOf(context: string): Promise<string[]>
  /** Removes all examples of an agent, or those of one caller. Returns how many. */
  removeTrainingExamplesOfAgent(agent: string, caller?: string): Promise<number>
  /** Changes since the last call (initially since `trainingExamples`). May include this gateway's own changes. */
  trainingExampleChanges(): Promise<TrainingExampleChanges>

  /** The stored sentence vectors with these keys, by key. */
  sentenceVectors(keys: readonly string[]): Promise<Map<string, Uint8Array>>
  /**
   * Inserts or replaces sentence vectors by their keys. They can be embedded again, so that a crash may lose the last ones.
   * @param at when they were used, in milliseconds since 1970
   */
  saveSentenceVectors(vectors: ReadonlyMap<string, Uint8Array>, at: number): Promise<void>
  /** Marks stored sentence vectors as used at `at`, except those that were used at `before` or later. */
  markSentenceVectors(keys: readonly string[], used: { at: number; before: number }): Promise<void>

  /** 32 bytes, created with the store, for sealing cursors. */
  cursorKey(): Promise<Uint8Array>
  /**
   * Removes entries older than their retention time (`priced` and `unrated` as keys, `session` as routes; claims that
   * expired before `claims`; sentence vectors that were last used before `sentenceVectors`) and the oldest entries over a maximum, at
   * most `limit` of each kind. Decisions over the maximum are taken from the holders with the most decisions.
   * @returns how many entries were removed
   */
  removeOld(
    before: {
      routes: number
      claims: number
      keys: number
      decisions: number
      trainingExamples: number
      sentenceVectors: number
    },
    limit: number,
  ): Promise<number>
}
