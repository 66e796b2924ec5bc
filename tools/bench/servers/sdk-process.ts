/**
 * The official A2A server, set up as in its documentation: Express, `InMemoryTaskStore`, no authentication, and an
 * executor that takes each task from submitted through working and an artifact to completed, as in its sample agent.
 */
import { randomUUID } from 'node:crypto'
import { type Artifact, type Message, TaskState } from '@a2a-js/sdk'
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  type RequestContext,
} from '@a2a-js/sdk/server'
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express'
import express from 'express'
import { tellAddress } from '../support/tell-address.ts'

let completed = 0

class Echo implements AgentExecutor {
  async execute(request: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage } = request
    const ids = { taskId, contextId, metadata: undefined }
    const history = [userMessage]
    const status = (state: TaskState) => ({
      state,
      message: undefined,
      timestamp: new Date().toISOString(),
    })
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_SUBMITTED),
        artifacts: [],
        history,
        metadata: undefined,
      }),
    )
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_WORKING) }))
    const artifact = echoOf(userMessage)
    bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact, append: false, lastChunk: true }))
    bus.publish(AgentEvent.statusUpdate({ ...ids, status: status(TaskState.TASK_STATE_COMPLETED) }))
    completed += 1
  }

  async cancelTask(): Promise<void> {}
}

function echoOf(message: Message): Artifact {
  return {
    artifactId: randomUUID(),
    name: 'result',
    description: '',
    parts: message.parts,
    metadata: undefined,
    extensions: [],
  }
}

const card = {
  name: 'echo',
  description: 'Repeats a text',
  supportedInterfaces: [
    { url: 'http://127.0.0.1/', protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
  ],
  provider: undefined,
  version: '1.0.0',
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  signatures: [],
}

const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Echo())
const app = express()
app.get('/completed', (_request, response) => void response.json(completed))
app.use(jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication }))
const server = app.listen(0, '127.0.0.1', () => tellAddress(server))
process.on('SIGTERM', () => process.exit(0))
