import { createHash } from 'node:crypto'
import { RecentMap } from '@parley/kit/did/recent-map'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import type { Log } from '@parley/kit/process/log'
import type { Lesson } from '@parley/negotiation/score/lesson'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import { type TaskOutcome, taskOutcomeOf } from './task-outcome.ts'

/** Takes lessons in; the index of the agents does. */
export interface FeedbackModel {
  /** Returns those that no longer fit beside them. */
  learn(...lessons: readonly Lesson[]): Lesson[]
  /** What this context taught is gone. */
  forget(context: string): void
  /** The words of a text as they are learned, counted. */
  count(text: string): Record<string, number>
}

export interface FeedbackRecorderOptions {
  store: RoutingStore
  log: Log
  /** ROUTE_LEARNING: absent where it is off. */
  pupil: FeedbackModel | undefined
  /** Called with a task's duration since its acceptance, its outcome and its owner. */
  ended: (agent: string, outcome: TaskOutcomeState, latencyMs: number | undefined, owner: string) => void
}

export type TaskOutcomeState = TaskOutcome['state']

const failed = -1
const wordsMax = 128
/** Tasks of this run whose rating may still be told by their agents. */
const taughtMax = 10_000
/** FeedbackRecorder taken in at a start without a pause. */
const atOnce = 1000

/**
 * What finished tasks teach (issue "Negotiation", learning): counted words and how it went, never a text. A task's words
 * wait with its route until its end is seen, then for a rating, without which a completed task teaches nothing; the lessons
 * of one context about one agent are one record.
 */
export class FeedbackRecorder {
  readonly #options: FeedbackRecorderOptions
  readonly #turns = new KeyedMutex()
  /** Tasks that taught, and how they were rated: an agent tells of a rating after the end, and more than once. */
  readonly #taught = new RecentMap<string, Route & { rating: number | undefined }>(taughtMax)

  constructor(options: FeedbackRecorderOptions) {
    this.#options = options
  }

  /** Reads what earlier runs have learned. */
  async open(): Promise<void> {
    const { pupil, store } = this.#options
    if (pupil === undefined) return
    const lessons = (await store.lessons()).filter(isRated)
    for (let at = 0; at < lessons.length; at += atOnce)
      await this.#drop(pupil.learn(...lessons.slice(at, at + atOnce)))
  }

  /** Takes in what other gateways learned and forgot. */
  async hear(): Promise<void> {
    const { pupil, store } = this.#options
    if (pupil === undefined) return
    const { learned, forgotten } = await store.trainingExampleChanges()
    for (const context of forgotten) pupil.forget(context)
    pupil.learn(...learned.filter(isRated))
  }

  /** What waits for the end of the task: empty where nothing is learned, for how a task ends is looked at all the same. */
  wordsOf(text: string): Record<string, number> {
    const counted = Object.entries(this.#options.pupil?.count(text) ?? {})
    return Object.fromEntries(counted.slice(0, wordsMax))
  }

  /** A task has ended; who saw it first teaches, the others come too late. */
  ended(route: Route, ending: TaskOutcome, rating?: number): void {
    void this.#ended(route, ending, rating).catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'a lesson could not be kept')
    })
  }

  /** The caller was shown the task as it is now. */
  saw(route: Route, task: unknown): void {
    const ending = taskOutcomeOf(task)
    if (ending !== undefined) this.ended(route, ending)
  }

  /** The owner of a completed task rated it: 1 to 5. */
  rated(route: Route, rating: number): void {
    this.ended(route, { state: 'completed' }, rating)
  }

  /** Outcomes that an agent tells with its heartbeat, of tasks that this gateway gave to it. */
  async told(
    agent: string,
    outcomes: readonly { taskId: string; state: TaskOutcomeState; rating?: number | undefined }[],
  ) {
    if (outcomes.length === 0) return
    const byId = new Map(outcomes.map((outcome) => [outcome.taskId, outcome]))
    const waiting = await this.#options.store.waiting(agent, [...byId.keys()])
    const taught = outcomes.flatMap(({ taskId, rating }) => {
      const route = rating === undefined ? undefined : this.#taught.get(taughtKey(agent, taskId))
      return route === undefined || route.rating === rating ? [] : [route]
    })
    for (const route of [...waiting, ...taught]) {
      const outcome = byId.get(route.id)
      if (outcome !== undefined) await this.#ended(route, { state: outcome.state }, outcome.rating)
    }
  }

  /** `contexts/clear`: what the context taught is forgotten. */
  async forget(owner: string, context: string): Promise<void> {
    const key = keyOf(owner, context)
    await this.#options.store.removeTrainingExamplesOf(key)
    this.#options.pupil?.forget(key)
  }

  /** The lessons of a context one after another: the same end may be seen on two ways at once. */
  #ended(route: Route, ending: TaskOutcome, rating: number | undefined): Promise<void> {
    const name = JSON.stringify([route.owner, route.context])
    return this.#turns.run([name], () => this.#teach(route, ending, rating))
  }

  async #teach(route: Route, { state, at }: TaskOutcome, rating: number | undefined): Promise<void> {
    const { store, pupil } = this.#options
    const now = await store.find(route.owner, 'task', route.id)
    if (now === undefined) return
    // Of several gateways that see the end, one alone gets them.
    const words = now.words && (await store.takeWords(route.owner, route.id))
    if (words === undefined && rating === undefined) return
    this.#taught.set(taughtKey(now.agent, now.id), { ...now, rating })
    if (words !== undefined) {
      const latencyMs = at === undefined ? undefined : Math.min(at, Date.now()) - now.at
      this.#options.ended(now.agent, state, latencyMs, now.owner)
    }
    if (pupil === undefined || now.context === undefined) return
    // That a task was completed says nothing about how well: its words wait for a rating.
    if (state === 'completed' && rating === undefined) return this.#keepUnrated(now, words)
    const rated = words ?? (await this.#takeUnrated(now))
    const key = keyOf(now.owner, now.context)
    const before = await store.findTrainingExample(key, now.agent)
    if (before === undefined && Object.keys(rated).length === 0) return
    const outcome = rating === undefined ? failed : (rating - 3) / 2
    const lesson: Lesson = {
      agent: now.agent,
      context: key,
      caller: keyOf(now.owner, ''),
      at: Date.now(),
      // A rating says more than that it failed; of several tasks the later ones count more.
      outcome: before === undefined || rating !== undefined ? outcome : (before.outcome + outcome) / 2,
      words: added(before?.words ?? {}, rated),
      ...((rating !== undefined || before?.rated === true) && { rated: true }),
    }
    await store.saveTrainingExample(lesson)
    await this.#drop(pupil.learn(lesson))
  }

  async #keepUnrated(task: Route, words: Route['words'] = {}): Promise<void> {
    if (Object.keys(words).length === 0) return
    await this.#options.store.save([{ ...task, kind: 'unrated', words, at: Date.now() }])
  }

  async #takeUnrated({ owner, id }: Route): Promise<Record<string, number>> {
    const { store } = this.#options
    const unrated = await store.find(owner, 'unrated', id)
    if (unrated !== undefined) await store.remove(owner, 'unrated', id)
    return unrated?.words ?? {}
  }

  async #drop(lessons: readonly Lesson[]): Promise<void> {
    for (const { context, agent } of lessons) await this.#options.store.removeTrainingExample(context, agent)
  }
}

/** Earlier versions kept completed tasks without a rating as good ones. */
const isRated = ({ outcome, rated }: Lesson) => outcome <= 0 || outcome === 1 || rated === true

const taughtKey = (agent: string, taskId: string) => `${agent} ${taskId}`

function added(before: Record<string, number>, more: Record<string, number>): Record<string, number> {
  const sum = new Map(Object.entries(before))
  for (const [word, count] of Object.entries(more)) {
    const known = sum.get(word)
    if (known !== undefined || sum.size < wordsMax) sum.set(word, (known ?? 0) + count)
  }
  return Object.fromEntries(sum)
}

/** Neither owner nor context stand in a lesson, only what tells them apart. */
function keyOf(owner: string, context: string): string {
  return createHash('sha256')
    .update(JSON.stringify([owner, context]))
    .digest('base64url')
    .slice(0, 22)
}
