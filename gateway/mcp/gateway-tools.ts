import type { Tool } from '@modelcontextprotocol/server'
import { textSchema } from './input-schema.ts'
import type { GatewayTool } from './tool-names.ts'

const taskId = { type: 'string', description: 'The task_id of an earlier result' }
const taskOnly: Tool['inputSchema'] = {
  type: 'object',
  properties: { task_id: taskId },
  required: ['task_id'],
  additionalProperties: false,
}

/** The tools of the gateway itself. */
const definitions: Record<GatewayTool, Omit<Tool, 'name'>> = {
  find_agent: {
    title: 'Find an agent',
    description:
      'Ranks the available agents for a task and explains the order. It names the tools with which to call them and starts nothing.',
    inputSchema: {
      type: 'object',
      properties: {
        task: { type: 'string', description: 'What has to be done, in one or two sentences' },
        details: { type: 'string', description: 'Further facts that decide which agent fits' },
        input_types: { type: 'array', items: { type: 'string' }, description: 'Media types of the input' },
        output_types: { type: 'array', items: { type: 'string' }, description: 'Media types of the output' },
        max_cost: { type: 'string', description: 'The highest price per call, for example 0.05' },
        limit: { type: 'integer', minimum: 1, maximum: 50, description: 'The number of candidates' },
      },
      required: ['task'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  ask_best_agent: {
    title: 'Send a request to the best agent',
    description:
      'Sends the request to the agent that fits best, which the gateway selects, and returns its result.',
    inputSchema: textSchema,
    annotations: { openWorldHint: true },
  },
  get_task: {
    title: 'Get a task',
    description:
      'Returns the state or the result of a task that was still running, without starting anything.',
    inputSchema: taskOnly,
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
  answer_task: {
    title: 'Answer a task',
    description: 'Answers the question of a task that waits for input, and returns its result.',
    inputSchema: {
      type: 'object',
      properties: {
        task_id: taskId,
        text: { type: 'string', description: 'The answer' },
        data: { type: 'object', description: 'The answer as data, if the question requests fields' },
        payment_session: { type: 'string', description: 'Pays for the task, after the user has paid' },
      },
      required: ['task_id'],
      additionalProperties: false,
    },
    annotations: { openWorldHint: true },
  },
  cancel_task: {
    title: 'Cancel a task',
    description: 'Cancels a task that has not ended.',
    inputSchema: taskOnly,
    annotations: { destructiveHint: true, idempotentHint: true, openWorldHint: false },
  },
}

const atGateway = listOf(['find_agent', 'ask_best_agent', 'get_task', 'answer_task', 'cancel_task'])
const atAgent = listOf(['get_task', 'answer_task', 'cancel_task'])

/** @param agent the slug of the agent that the address names; undefined at the gateway */
export function gatewayToolList(agent: string | undefined): readonly Tool[] {
  return agent === undefined ? atGateway : atAgent
}

function listOf(names: readonly GatewayTool[]): readonly Tool[] {
  return names.map((name) => ({ name, ...definitions[name] }))
}
