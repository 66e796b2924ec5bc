import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { AgentClient, WireTask } from '../client/client.ts'
import { ConnectionError, RpcError } from '../client/rpc-error.ts'

/** What a client was told, and holds the agent to. */
export interface Told {
  taskId: string
  /** Stands in the task's text: two tasks with one are one too many. */
  text: string
  /** It registered a `long_running` webhook. */
  webhook: boolean
}

export interface ChaosClientOptions {
  /** One at each process. */
  clients: AgentClient[]
  receiverUrl: string
  random: () => number
  /** Codes of errors other than that something is away. */
  unclear: Map<number, number>
  stop: AbortSignal
}

const kinds = ['soon', 'soon', 'soon', 'slow', 'ask', 'cancel']
/** Of the seconds that processes are frozen: longer than any of them, and a request goes elsewhere then. */
const betweenMs = 50

/** Sends one message after the other, each to any process; one without an answer is sent again under its Idempotency-Key. */
export async function chaosClient(options: ChaosClientOptions): Promise<Told[]> {
  const { receiverUrl, random, stop } = options
  const told: Told[] = []
  while (!stop.aborted) {
    const kind = kinds[Math.floor(random() * kinds.length)] ?? 'soon'
    const key = randomUUID()
    const text = `${kind === 'cancel' ? 'hang' : kind} ${key}`
    const webhook = random() < 0.5
    const message = { text, messageId: randomUUID() }
    const configuration = webhook
      ? { long_running: true, push_notification_config: { id: randomUUID(), url: receiverUrl } }
      : undefined
    const headers = { 'idempotency-key': key }
    const task = await persistently(options, (client) => client.send(message, configuration, { headers }))
    told.push({ taskId: task.id, text, webhook })
    if (kind === 'cancel') await untilEnded(options, task.id, (client) => client.cancel(task.id))
    await wait(betweenMs * random())
  }
  return told
}

/** Asks any process, again and again, until one answers; what is refused for another reason than an outage is counted. */
export async function persistently<T>(
  { clients, random, unclear }: Pick<ChaosClientOptions, 'clients' | 'random' | 'unclear'>,
  ask: (client: AgentClient) => Promise<T>,
): Promise<T> {
  for (;;) {
    const client = clients[Math.floor(random() * clients.length)] as AgentClient
    try {
      return await ask(client)
    } catch (error) {
      if (error instanceof ConnectionError) await wait(100)
      else if (error instanceof RpcError && error.code === -32042) await wait(100)
      else if (error instanceof RpcError && error.status >= 500) {
        unclear.set(error.code, (unclear.get(error.code) ?? 0) + 1)
        await wait(100)
      } else throw error
    }
  }
}

/** What has been done already, by an attempt without an answer, is refused as done. */
export async function untilEnded(
  options: Pick<ChaosClientOptions, 'clients' | 'random' | 'unclear'>,
  taskId: string,
  act: (client: AgentClient) => Promise<WireTask>,
): Promise<void> {
  try {
    await persistently(options, act)
  } catch (error) {
    const done = error instanceof RpcError && [-32002, -32004, -32008].includes(error.code)
    if (!done) throw new Error(`task ${taskId}: ${String(error)}`, { cause: error })
  }
}
