import { createHash } from 'node:crypto'
import { RecentMap } from '@parley/kit/did/recent-map'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import type { Log } from '@parley/kit/process/log'
import type { AgentIndex } from '@parley/negotiation/index/agent-index'
import { trainingWords } from '@parley/negotiation/score/learning'
import type { TaskFeatures, TrainingExample } from '@parley/negotiation/score/training-example'
import type { TaskEnd } from '@parley/wire/model/task'
import type { Route, RoutingStore } from '../store/routing-store.ts'

/** Learns from training examples (`modelOf`). */
export interface FeedbackModel {
  /** Returns the examples that were dropped because they exceed the limit per agent. */
  learn(...examples: readonly TrainingExample[]): TrainingExample[]
  /** Removes the examples of a context. */
  forget(context: string): void
  /** Removes the examples of an agent. */
  forgetAgent(agent: string): void
  /** Counts the words of a text. */
  count(text: string): Record<string, number>
  /** The sentence vector of a text (`TrainingExample.vector`). Undefined without an encoder. */
  vectorOf?(text: string): Promise<string | undefined>
}

/** The feedback model of an agent index. */
export const modelOf = (
  index: Pick<AgentIndex, 'learn' | 'forgetContext' | 'learned'>,
  vectorOf?: FeedbackModel['vectorOf'],
): FeedbackModel => ({
  learn: (...examples) => index.learn(...examples),
  forget: (context) => index.forgetContext(context),
  forgetAgent: (agent) => index.learned.forgetAgent(agent),
  count: trainingWords,
  ...(vectorOf && { vectorOf }),
})

export interface FeedbackRecorderOptions {
  store: RoutingStore
  log: Log
  /** Undefined if ROUTE_LEARNING is off. */
  model: FeedbackModel | undefined
  /** Called for each task outcome with the task's owner and its duration since acceptance. */
  ended: (agent: string, outcome: TaskOutcomeState, latencyMs: number | undefined, owner: string) => void
}

export type TaskOutcomeState = TaskEnd['state']

const failed = -1
const wordsMax = 128
/** Maximum number of finished tasks of this run for which agents may still report a rating. */
const finishedMax = 10_000
/** Number of training examples loaded per batch at startup. */
const batchSize = 1000

/**
 * Makes training examples from finished tasks: counted words, a sentence vector and the outcome, never the text. A task's words are
 * stored with its route until the task ends and is rated, and its vector with the decision about its message; completed tasks without a
 * rating are not used. All examples of one context and agent are merged into one record.
 */
export class FeedbackRecorder {
  readonly #options: FeedbackRecorderOptions
  readonly #turns = new KeyedMutex()
  /** Finished tasks with their ratings: agents report a rating after the outcome, and more than once. */
  readonly #finished = new RecentMap<string, Route & { rating: number | undefined }>(finishedMax)

  constructor(options: FeedbackRecorderOptions) {
    this.#options = options
  }

  /** Loads the stored training examples. */
  async load(): Promise<void> {
    const { model, store } = this.#options
    if (model === undefined) return
    const examples = (await store.trainingExamples()).filter(isRated)
    for (let at = 0; at < examples.length; at += batchSize)
      await this.#drop(model.learn(...examples.slice(at, at + batchSize)))
  }

  /** Applies the examples that other gateways added and removed. */
  async sync(): Promise<void> {
    const { model, store } = this.#options
    if (model === undefined) return
    const { learned, forgotten, forgottenOf } = await store.trainingExampleChanges()
    for (const context of forgotten) model.forget(context)
    for (const agent of forgottenOf) await this.#reload(agent)
    model.learn(...learned.filter(isRated))
  }

  /** Whether examples are learned from (ROUTE_LEARNING). */
  get learns(): boolean {
    return this.#options.model !== undefined
  }

  /** The words to store until the task ends. Empty if ROUTE_LEARNING is off: outlier detection still needs the outcome. */
  wordsOf(text: string): Record<string, number> {
    const counted = Object.entries(this.#options.model?.count(text) ?? {})
    return Object.fromEntries(counted.slice(0, wordsMax))
  }

  /** Adds the sentence vector of a text to the features of its instruction, which were counted before. Never rejects. */
  async addVector(text: string, features: TaskFeatures): Promise<void> {
    const vector = await this.#options.model?.vectorOf?.(text).catch(() => undefined)
    if (vector !== undefined) features.vector = vector
  }

  /** The features of an instruction to store for learning. Undefined if nothing can be learned from it, or if ROUTE_LEARNING is off. */
  featuresOf(text: string): TaskFeatures | undefined {
    const features = { words: this.wordsOf(text) }
    return isEmpty(features) ? undefined : features
  }

  /** The key under which a context is stored with examples and decisions. */
  contextKey(owner: string, context: string): string {
    return keyOf(owner, context)
  }

  /** Stores an example and learns from it. */
  train(example: TrainingExample): Promise<void> {
    return this.#turns.run([turnOf(example.agent)], async () => {
      await this.#options.store.saveTrainingExample(example)
      if (this.#options.model !== undefined) await this.#drop(this.#options.model.learn(example))
    })
  }

  /** The examples of an agent that count, oldest first. */
  async examplesOf(agent: string): Promise<TrainingExample[]> {
    return (await this.#options.store.trainingExamplesOf(agent)).filter(isRated)
  }

  /** Removes all examples of an agent, or those of one caller. Returns how many. */
  async forgetAgent(agent: string, caller?: string): Promise<number> {
    const removed = await this.#options.store.removeTrainingExamplesOfAgent(agent, caller)
    await this.#reload(agent)
    return removed
  }

  /** Removes the examples of a context by its key, and those that are removed with it. */
  async forgetKey(key: string): Promise<void> {
    const { store, model } = this.#options
    for (const context of await store.removeTrainingExamplesOf(key)) model?.forget(context)
  }

  /** Records a task's outcome. Only the first report counts. */
  recordOutcome(route: Route, outcome: TaskEnd, rating?: number): void {
    void this.#record(route, outcome, rating).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'failed to store a training example')
    })
  }

  /** Records the owner's rating of a completed task, 1 to 5. */
  recordRating(route: Route, rating: number): void {
    this.recordOutcome(route, { state: 'completed' }, rating)
  }

  /** Records outcomes from the heartbeat of an agent, for tasks that this gateway sent to it. */
  async recordHeartbeat(
    agent: string,
    outcomes: readonly { taskId: string; state: TaskOutcomeState; rating?: number | undefined }[],
  ) {
    if (outcomes.length === 0) return
    const byId = new Map(outcomes.map((outcome) => [outcome.taskId, outcome]))
    const waiting = await this.#options.store.waiting(agent, [...byId.keys()])
    const finished = outcomes.flatMap(({ taskId, rating }) => {
      const route = rating === undefined ? undefined : this.#finished.get(finishedKey(agent, taskId))
      return route === undefined || route.rating === rating ? [] : [route]
    })
    for (const route of [...waiting, ...finished]) {
      const outcome = byId.get(route.id)
      if (outcome !== undefined) await this.#record(route, { state: outcome.state }, outcome.rating)
    }
  }

  /** `contexts/clear`: removes the examples of the context, and the words of its decisions. */
  async forgetContext(owner: string, context: string): Promise<void> {
    const key = keyOf(owner, context)
    await this.#turns.run([key], async () => {
      await this.#options.store.removeDecisionFeatures(key)
      await this.forgetKey(key)
    })
  }

  /** Runs `change` while no other call clears a context with one of these keys or learns from it. */
  whileKept<T>(keys: readonly string[], change: () => Promise<T>): Promise<T> {
    return this.#turns.run([...keys], change)
  }

  /** Replaces what the model knows about an agent by its stored examples. */
  #reload(agent: string): Promise<void> {
    return this.#turns.run([turnOf(agent)], async () => {
      const { model } = this.#options
      if (model === undefined) return
      const left = await this.examplesOf(agent)
      model.forgetAgent(agent)
      model.learn(...left)
    })
  }

  /** Serialized by context, because the same outcome may be reported twice concurrently. */
  #record(route: Route, outcome: TaskEnd, rating: number | undefined): Promise<void> {
    const name = JSON.stringify([route.owner, route.context])
    return this.#turns.run([name], () => this.#learnFrom(route, outcome, rating))
  }

  async #learnFrom(route: Route, { state, at }: TaskEnd, rating: number | undefined): Promise<void> {
    const { store, model } = this.#options
    const now = await store.find(route.owner, 'task', route.id)
    if (now === undefined) return
    // Only one of several gateways that observe the outcome gets the words.
    const words = now.words && (await store.takeWords(route.owner, route.id))
    if (words === undefined && rating === undefined) return
    this.#finished.set(finishedKey(now.agent, now.id), { ...now, rating })
    if (words !== undefined) {
      const latencyMs = at === undefined ? undefined : Math.min(at, Date.now()) - now.at
      this.#options.ended(now.agent, state, latencyMs, now.owner)
    }
    if (model === undefined || now.context === undefined) return
    // Completion does not imply quality, so the words are kept until a rating arrives.
    if (state === 'completed' && rating === undefined) return this.#keepUnrated(now, words)
    const rated = words ?? (await this.#takeUnrated(now))
    const key = keyOf(now.owner, now.context)
    const before = await store.findTrainingExample(key, now.agent)
    if (before === undefined && Object.keys(rated).length === 0) return
    const outcome = rating === undefined ? failed : (rating - 3) / 2
    const vector = before?.vector ?? (await this.#vectorOf(now, rated))
    const example: TrainingExample = {
      agent: now.agent,
      context: key,
      caller: keyOf(now.owner, ''),
      at: Date.now(),
      // A rating overrides a failure. Otherwise, later tasks count more.
      outcome: before === undefined || rating !== undefined ? outcome : (before.outcome + outcome) / 2,
      words: added(before?.words ?? {}, rated),
      ...(vector !== undefined && { vector }),
      ...((rating !== undefined || before?.rated === true) && { rated: true }),
    }
    await this.train(example)
  }

  async #keepUnrated(task: Route, words: Route['words'] = {}): Promise<void> {
    if (Object.keys(words).length === 0) return
    const { store, log } = this.#options
    const written = store.queueRoutes([{ ...task, kind: 'unrated', words, at: Date.now() }])
    if (store.shared) await written
    else written.catch((error: unknown) => log.error({ err: error }, 'failed to store the words of a task'))
  }

  async #takeUnrated({ owner, id }: Route): Promise<Record<string, number>> {
    const { store } = this.#options
    const unrated = await store.find(owner, 'unrated', id)
    if (unrated !== undefined) await store.remove(owner, 'unrated', id)
    return unrated?.words ?? {}
  }

  /** The sentence vector of the message with which the task began, if the words are those of this message. */
  async #vectorOf({ owner, id }: Route, words: Record<string, number>): Promise<string | undefined> {
    if (Object.keys(words).length === 0) return undefined
    const features = await this.#options.store.featuresOfTask(owner, id)
    return features !== undefined && areSame(features.words, words) ? features.vector : undefined
  }

  async #drop(examples: readonly TrainingExample[]): Promise<void> {
    for (const { context, agent } of examples) await this.#options.store.removeTrainingExample(context, agent)
  }
}

/** Earlier versions stored completed tasks without a rating as positive examples. */
const isRated = ({ outcome, rated }: TrainingExample) => outcome <= 0 || outcome === 1 || rated === true

const areSame = (words: Record<string, number>, others: Record<string, number>): boolean =>
  Object.keys(words).length === Object.keys(others).length &&
  Object.entries(words).every(([word, count]) => others[word] === count)

const finishedKey = (agent: string, taskId: string) => `${agent} ${taskId}`

function added(before: Record<string, number>, more: Record<string, number>): Record<string, number> {
  const sum = new Map(Object.entries(before))
  for (const [word, count] of Object.entries(more)) {
    const known = sum.get(word)
    if (known !== undefined || sum.size < wordsMax) sum.set(word, (known ?? 0) + count)
  }
  return Object.fromEntries(sum)
}

/** Whether nothing can be learned from the features. */
export const isEmpty = ({ words, vector }: TaskFeatures): boolean =>
  vector === undefined && Object.keys(words).length === 0

const turnOf = (agent: string) => `agent ${agent}`

/** Examples hold hashes of owner and context. */
export function keyOf(owner: string, context: string): string {
  return createHash('sha256')
    .update(JSON.stringify([owner, context]))
    .digest('base64url')
    .slice(0, 22)
}
