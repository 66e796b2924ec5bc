import type { AgentCard, TaskState } from 'a2a-js-0.3'
import {
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from 'a2a-js-0.3/server'
import { agentCardHandler, jsonRpcHandler, UserBuilder } from 'a2a-js-0.3/server/express'
import express from 'express'
import { answerTo } from './script.ts'

class Calculator implements AgentExecutor {
  readonly #contexts = new Map<string, string>()

  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus) {
    this.#contexts.set(taskId, contextId)
    const publish = (state: TaskState, final: boolean, said?: string) => {
      const parts = [{ kind: 'text' as const, text: said ?? '' }]
      const message = {
        kind: 'message' as const,
        messageId: crypto.randomUUID(),
        role: 'agent' as const,
        parts,
      }
      const status = {
        state,
        timestamp: new Date().toISOString(),
        ...(said !== undefined && { message: { ...message, taskId, contextId } }),
      }
      bus.publish({ kind: 'status-update', taskId, contextId, status, final })
    }
    const isNew = task === undefined
    if (isNew) {
      const status = { state: 'submitted' as const, timestamp: new Date().toISOString() }
      bus.publish({ kind: 'task', id: taskId, contextId, status, history: [userMessage] })
    }
    const [part] = userMessage.parts
    const { question, answer } = answerTo(part?.kind === 'text' ? part.text : '', isNew)
    if (question !== undefined) {
      publish('input-required', true, question)
      return bus.finished()
    }
    publish('working', false)
    const artifact = { artifactId: 'a', name: 'answer', parts: [{ kind: 'text' as const, text: answer }] }
    bus.publish({ kind: 'artifact-update', taskId, contextId, artifact })
    publish('completed', true)
    bus.finished()
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus) {
    const status = { state: 'canceled' as const, timestamp: new Date().toISOString() }
    const contextId = this.#contexts.get(taskId) ?? ''
    bus.publish({ kind: 'status-update', taskId, contextId, status, final: true })
    bus.finished()
  }
}

/** An agent of `@a2a-js/sdk` 0.3.14 at this address. */
export function jsV03App(url: string): express.Express {
  const card: AgentCard = {
    name: 'js v03',
    description: 'Calculates products and polynomials',
    protocolVersion: '0.3.0',
    version: '1.0.0',
    url: `${url}/rpc`,
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'calculate', name: 'Calculate', description: 'Calculates', tags: ['numbers'] }],
  }
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Calculator())
  const app = express()
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }))
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
  return app
}
