import { RecentMap } from '@parley/kit/did/recent-map'
import type { Log } from '@parley/kit/process/log'
import type { TaskFeatures } from '@parley/negotiation/score/training-example'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import { idsOf } from '@parley/wire/model/ids'
import { operations } from '@parley/wire/model/operation'
import type { ReadCall } from '../forwarding/call-reader.ts'
import { type FeedbackRecorder, keyOf } from './feedback.ts'

/** A caller that returns earlier is still busy with the same thing. */
const returnMs = 10 * 60_000
/** Further returns replace the oldest example of the caller and agent. */
const examplesMax = 4
/** An entry has up to 128 words and a vector, about 6 kB. */
const usesMax = 5000

export interface NamedUsesOptions {
  feedback: FeedbackRecorder
  /** Returns the text of a message with which agents are compared. */
  textOf: (message: IncomingMessage) => string
  log: Log
  /** Clock in milliseconds since 1970. */
  now?: () => number
}

/** The last message of a caller to an agent. */
interface Use {
  at: number
  /** Number of examples so far. */
  count: number
  /** Undefined if nothing can be learned from the message. */
  features: TaskFeatures | undefined
  /** The same object for all uses of the caller and agent until they are forgotten. */
  life: { isOver: boolean }
}

/**
 * Learns from callers that name an agent and later use it again. A message that the agent has answered becomes an example when its
 * caller returns. Only some messages are read: one in ten minutes for each caller and agent.
 */
export class NamedUses {
  readonly #options: NamedUsesOptions
  readonly #now: () => number
  readonly #uses = new RecentMap<string, Use>(usesMax)

  constructor(options: NamedUsesOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Whether a message of the caller to the agent should be read for `note`. */
  isDue(owner: string, agent: string): boolean {
    if (!this.#options.feedback.learns) return false
    const last = this.#uses.get(nameOf(owner, agent))
    return last === undefined || this.#now() - last.at >= returnMs
  }

  /** Notes a call that names the agent. Learns and forgets in the background, and never throws. */
  note(owner: string, agent: string, { codec, operation, params }: ReadCall): void {
    void this.#quietly(async () => {
      if (operation === 'clearContext') {
        const { contextId } = codec.readParams(operation, params, idsOf(owner))
        await this.#options.feedback.forgetContext(owner, contextId)
        return this.forget(owner, agent)
      }
      if (operation === undefined || operations[operation].target !== 'message') return
      if (!this.isDue(owner, agent)) return
      const { message } = codec.readParams('sendMessage', params, idsOf(owner))
      await this.#noteText(owner, agent, this.#options.textOf(message))
    })
  }

  /** Removes the examples of a caller and agent (`contexts/clear`), because an example does not say from which context it is. */
  async forget(owner: string, agent: string): Promise<void> {
    const name = nameOf(owner, agent)
    const last = this.#uses.get(name)
    if (last !== undefined) last.life.isOver = true
    this.#uses.delete(name)
    const { feedback } = this.#options
    for (let number = 0; number < examplesMax; number += 1) {
      const context = contextOf(owner, agent, number)
      await feedback.whileKept([context], () => feedback.forgetKey(context))
    }
  }

  async #noteText(owner: string, agent: string, text: string): Promise<void> {
    const { feedback } = this.#options
    const [name, at] = [nameOf(owner, agent), this.#now()]
    const { count = 0, features: before, life = { isOver: false } } = this.#uses.get(name) ?? {}
    const features = feedback.featuresOf(text)
    this.#uses.set(name, { at, count: count + (before === undefined ? 0 : 1), features, life })
    if (features !== undefined) await feedback.addVector(text, features)
    if (before === undefined) return
    const context = contextOf(owner, agent, count % examplesMax)
    const common = { agent, context, caller: keyOf(owner, ''), at, outcome: 1, used: true }
    await feedback.whileKept([context], async () => {
      // `forget` may have been called meanwhile.
      if (!life.isOver) await feedback.train({ ...before, ...common })
    })
  }

  async #quietly(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      // The agent answers a message that cannot be read.
      if (!(error instanceof ParleyError))
        this.#options.log.warn({ err: error }, 'failed to learn from repeated use')
    }
  }
}

const nameOf = (owner: string, agent: string) => `${owner} ${agent}`

const contextOf = (owner: string, agent: string, number: number) => keyOf(owner, `use ${number} of ${agent}`)
