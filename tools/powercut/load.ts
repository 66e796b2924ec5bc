/** Clients of an agent that note what each response acknowledges. */
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { isTerminal, type TaskState } from '@parley/wire/model/task'

/** The first word of the text selects what the handler does. Results above 256 KiB are stored apart from their task. */
export const agentSource = `
export default {
  name: 'power cut test',
  description: 'Works at different speeds',
  skills: [{ id: 'work', name: 'Work', description: 'Works' }],
  concurrency: 32,
  async *handle({ text, ask, history }) {
    const kind = text.split(' ')[0]
    if (kind === 'slow') await new Promise((resolve) => setTimeout(resolve, 20))
    if (kind === 'big') yield text.repeat(6000)
    if (kind === 'ask' && history.length === 1) return yield ask('go on?')
    yield 'did ' + text
  },
}
`
const kinds = ['fast', 'fast', 'fast', 'fast', 'slow', 'ask', 'cancel']
/** One task of so many is large. */
const everyBig = 50

/** The state of a task that one response promises. */
export interface Acknowledgement {
  /** Identifies the response: the id of its JSON-RPC request. */
  responseId: string
  taskId: string
  state: TaskState
  /** Number of messages of the client that the task has. */
  messages: number
  /** The text of the artifacts. */
  text: string
}

interface WireTask {
  id: string
  status: { state: TaskState }
  artifacts?: { parts: { text?: string }[] }[]
}

/** Runs tasks one after the other until the common number is reached, and appends to the acknowledgements. */
export async function client(
  agent: { url: string; token: string },
  acknowledged: Map<string, Acknowledgement>,
  left: { tasks: number },
): Promise<void> {
  const call = async (method: string, params: object, messages: number): Promise<WireTask> => {
    const responseId = `answer-${randomUUID()}`
    const response = await fetch(agent.url, {
      method: 'POST',
      headers: { authorization: `Bearer ${agent.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: responseId, method, params }),
    })
    const { result, error } = (await response.json()) as { result?: WireTask; error?: unknown }
    if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error)}`)
    const { id: taskId, status } = result
    acknowledged.set(responseId, { responseId, taskId, state: status.state, messages, text: textOf(result) })
    return result
  }
  const send = (text: string, messages: number, taskId?: string) => {
    const parts = [{ kind: 'text', text }]
    const message = {
      role: 'user',
      kind: 'message',
      messageId: randomUUID(),
      parts,
      ...(taskId && { taskId }),
    }
    return call('message/send', { message }, messages)
  }
  const settled = async (task: WireTask, messages: number): Promise<WireTask> => {
    for (let now = task; ; now = await call('tasks/get', { task_id: task.id }, messages)) {
      if (isTerminal(now.status.state) || now.status.state === 'input-required') return now
      await pause(5)
    }
  }
  while (left.tasks > 0) {
    left.tasks -= 1
    const kind = left.tasks % everyBig === 0 ? 'big' : kinds[left.tasks % kinds.length]
    const task = await send(`${kind} ${randomUUID()}`, 1)
    if (kind === 'cancel') await call('tasks/cancel', { task_id: task.id }, 1).catch(() => {})
    const paused = await settled(task, 1)
    if (paused.status.state === 'input-required') await settled(await send('go on', 2, task.id), 2)
  }
}

/** The text of all artifacts. */
export function textOf({ artifacts = [] }: { artifacts?: { parts: object[] }[] }): string {
  const texts = artifacts.flatMap(({ parts }) => parts)
  return texts.map((part) => ('text' in part && typeof part.text === 'string' ? part.text : '')).join('\n')
}
