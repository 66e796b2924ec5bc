import { AgentCard, TaskState } from '@a2a-js/sdk'
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server'
import { agentCardHandler, jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import express from 'express'
import { answerTo } from './script.ts'

const text = (value: string) => ({
  content: { $case: 'text' as const, value },
  mediaType: '',
  filename: '',
  metadata: undefined,
})

class Calculator implements AgentExecutor {
  readonly #contexts = new Map<string, string>()

  async execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus) {
    this.#contexts.set(taskId, contextId)
    const ids = { taskId, contextId, metadata: undefined }
    const status = (state: TaskState, said?: string) => ({
      state,
      message:
        said === undefined
          ? undefined
          : {
              messageId: crypto.randomUUID(),
              role: 2,
              parts: [text(said)],
              contextId,
              taskId,
              metadata: undefined,
              extensions: [],
              referenceTaskIds: [],
            },
      timestamp: new Date().toISOString(),
    })
    const isNew = task === undefined
    // The SDK requires a task as the first event, also of a continued task.
    const submitted = status(TaskState.TASK_STATE_SUBMITTED)
    const begun = { id: taskId, contextId, status: submitted, history: [userMessage], artifacts: [] }
    bus.publish(AgentEvent.task(task ?? { ...begun, metadata: undefined }))
    const content = userMessage.parts[0]?.content
    const { question, answer } = answerTo(content?.$case === 'text' ? content.value : '', isNew)
    if (question !== undefined) {
      const asks = status(TaskState.TASK_STATE_INPUT_REQUIRED, question)
      bus.publish(AgentEvent.statusUpdate({ ...ids, status: asks }))
      return bus.finished()
    }
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_WORKING) }))
    const artifact = { artifactId: 'a', name: 'answer', description: '', parts: [text(answer)] }
    bus.publish(
      AgentEvent.artifactUpdate({
        ...ids,
        artifact: { ...artifact, metadata: undefined, extensions: [] },
        append: false,
        lastChunk: true,
      }),
    )
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_COMPLETED) }))
    bus.finished()
  }

  async cancelTask(taskId: string, bus: ExecutionEventBus) {
    const status = {
      state: TaskState.TASK_STATE_CANCELED,
      message: undefined,
      timestamp: new Date().toISOString(),
    }
    const contextId = this.#contexts.get(taskId) ?? ''
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }))
    bus.finished()
  }
}

/** An agent of `@a2a-js/sdk` 1.3 at this address. */
export function jsV1App(url: string): express.Express {
  const card = AgentCard.fromJSON({
    name: 'js v1',
    description: 'Calculates products and polynomials',
    version: '1.0.0',
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'calculate', name: 'Calculate', description: 'Calculates', tags: ['numbers'] }],
  })
  const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Calculator())
  const app = express()
  app.use('/.well-known/agent-card.json', agentCardHandler({ agentCardProvider: requestHandler }))
  app.use('/rpc', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
  return app
}
