import { randomUUID } from 'node:crypto'
import type { Task, TaskState } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type { Agents, CallEvent, CallMessage, CallOptions, CallResult } from '../../author/agents.ts'
import { dataOf, filesOf, pauses, textOf } from '../../author/build-context.ts'
import { AgentCallError, AgentFailedError, AgentNotFoundError } from '../../author/call-errors.ts'
import { type CollectedOutput, OutputCollector } from '../../author/collect-output.ts'
import type { HandlerContext } from '../../author/context.ts'
import type { Delegation } from '../../author/delegation.ts'
import { type Output, reply as replyWith } from '../../author/output.ts'
import { stateError } from './call-failure.ts'
import { artifactEvent, replyEvent, resultOf } from './call-result.ts'
import { partsOf } from './outgoing-message.ts'

/** A message as a fake agent receives it. */
export interface FakeMessage
  extends Pick<
    HandlerContext,
    'text' | 'data' | 'files' | 'ask' | 'requireAuth' | 'bid' | 'decline' | 'reply'
  > {
  /** The skill that the caller named. */
  skillId: string | undefined
  /** 1 for the first message of a task, 2 for the answer to its first question. */
  turn: number
}

/** Replaces another agent in a test: returns the output of its task, or throws to fail it. */
export type FakeAgent = (message: FakeMessage) => Output | Promise<Output>

const outputMaxBytes = 64 * 1024 * 1024
const stateOf = {
  ask: 'input-required',
  auth: 'auth-required',
  payment: 'payment-required',
  bid: 'negotiation-bid-submitted',
  decline: 'rejected',
  fail: 'failed',
} as const

/**
 * Makes calls of fake agents, which `agents` lists by slug. The name `-` is the agent that `best` calls. No token, gateway
 * or network is involved.
 */
export function fakeDelegation(agents: Readonly<Record<string, FakeAgent>>): Delegation {
  return { open: ({ task }) => ({ agents: new FakeCalls(agents).agents, children: task.children ?? [] }) }
}

class FakeCalls {
  readonly agents: Agents
  readonly #fakes: Readonly<Record<string, FakeAgent>>
  readonly #children: { agent: string; taskId: string }[] = []
  readonly #turns = new Map<string, number>()

  constructor(fakes: Readonly<Record<string, FakeAgent>>) {
    this.#fakes = fakes
    this.agents = {
      call: (agent, message, options) => this.#call(agent, message, options),
      best: (message, options) => this.#call('-', message, options),
      stream: (agent, message, options) => this.#stream(agent, message, options),
      children: this.#children,
    }
  }

  async #call(agent: string, message: CallMessage, options: CallOptions = {}): Promise<CallResult> {
    const fake = Object.hasOwn(this.#fakes, agent) ? this.#fakes[agent] : undefined
    if (fake === undefined)
      throw new AgentNotFoundError(`There is no agent "${agent}": add it to the agents of testAgent`, {
        agent,
      })
    const { taskId = randomUUID(), contextId = randomUUID() } = options
    const turn = (this.#turns.get(taskId) ?? 0) + 1
    this.#turns.set(taskId, turn)
    if (turn === 1) this.#children.push({ agent, taskId })
    const parts = partsOf(message)
    const skillId = typeof message === 'string' ? undefined : message.skillId
    const received = {
      text: textOf(parts),
      data: dataOf(parts),
      files: filesOf(parts),
      skillId,
      turn,
      ...pauses,
      reply: replyWith,
    }
    const collected = await collect(fake, received).catch((error: unknown) => {
      if (error instanceof AgentCallError) throw error
      const reason = error instanceof Error ? error.message : String(error)
      throw new AgentFailedError({ agent, taskId, state: 'failed', reason })
    })
    const task = taskOf(collected, { taskId, contextId })
    const reply = (answer: CallMessage) => this.#call(agent, answer, { taskId, contextId })
    const prompt = (collected.pause ?? collected.reply)?.parts ?? []
    const failed = stateError({ agent, task, prompt, deadlineAt: undefined, reply })
    if (failed !== undefined) throw failed
    return resultOf(agent, { task, prompt })
  }

  async *#stream(
    agent: string,
    message: CallMessage,
    options?: CallOptions,
  ): AsyncGenerator<CallEvent, void, void> {
    const result = await this.#call(agent, message, options)
    const { taskId = '', artifacts } = result
    yield { kind: 'state', taskId, state: 'working' }
    for (const { name, parts } of artifacts) {
      for (const part of parts)
        if (part.kind === 'text') yield { kind: 'delta', taskId, text: part.text, parts: [part] }
      yield artifactEvent(taskId, { name, parts })
    }
    yield { kind: 'state', taskId, state: 'completed' }
    const reply = replyEvent(result)
    if (reply !== undefined) yield reply
  }
}

async function collect(fake: FakeAgent, message: FakeMessage): Promise<CollectedOutput> {
  const collector = new OutputCollector(outputMaxBytes)
  collector.take(await fake(message))
  return collector.result()
}

function taskOf(
  { artifacts, pause }: CollectedOutput,
  { taskId, contextId }: { taskId: string; contextId: string },
): Task {
  const state: TaskState = pause === undefined ? 'completed' : stateOf[pause.kind]
  const made = artifacts.map((artifact) => ({ ...artifact, artifactId: randomUUID() }))
  return { id: taskId, contextId, status: { state, timestamp: timestamp() }, history: [], artifacts: made }
}
