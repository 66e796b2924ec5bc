import { readFileSync } from 'node:fs'
import path from 'node:path'
import { AgentClient } from '@parley/client/internal/client'
import { ClientToken } from '@parley/kit/auth/client-token'
import { decisionList } from '@parley/wire/codecs/answers/operator/records'
import type { Deployment } from './deployment.ts'
import { readClient } from './operator.ts'

/** The agents that fill the screens of the console with work. */
export const consoleAgents = path.join(import.meta.dirname, '..', 'agents', 'console')

export interface SentTasks {
  /** A task of an agent that has called another one twice. */
  chain: string
  /** A task that waits for an answer of its caller. */
  question: string
  /** A task with hostile artifacts. */
  hostile: string
  /** A task with a webhook that its receiver refuses. */
  webhook: string
  /** The path of this webhook below /console. */
  delivery: string
  /** The decision of the gateway for the last message. */
  decision: string
}

/** Returns the name and the password of the first operator. */
export function firstOperator({ dataDir }: Deployment): { account: string; password: string } {
  const password = readFileSync(path.join(dataDir, 'oauth', 'console-password'), 'utf8').trim()
  return { account: 'operator', password }
}

/** Returns a token of the development client. */
export function developerToken({ dataDir }: Deployment): Promise<string> {
  const client = readClient(dataDir, 'dev-client.json')
  return new ClientToken({ ...client, scope: 'agent:read agent:write' }).get()
}

/** Sends tasks to several agents, directly and by the choice of the gateway. */
export async function fillConsole(deployment: Deployment, receiver: string): Promise<SentTasks> {
  const token = await developerToken(deployment)
  const at = (slug: string) => new AgentClient({ url: `${deployment.url}/agents/${slug}`, token })
  const gateway = new AgentClient({ url: deployment.url, token })
  const planner = at('planner')
  const chain = await planner.wait((await planner.send('A weekend in Lisbon')).id)
  const question = await at('editor').send('Dear all, the meeting moves to Monday')
  const collector = at('collector')
  const hostile = await collector.wait((await collector.send('the front page')).id)
  const researcher = at('researcher')
  const pushNotificationConfig = { id: crypto.randomUUID(), url: receiver }
  const webhook = await researcher.send('the history of tea', { pushNotificationConfig })
  await researcher.wait(webhook.id)
  await gateway.wait((await gateway.send('Research facts about the history of coffee')).id)
  const listed = await fetch(`${deployment.url}/operator/decisions?limit=1`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const [decision] = decisionList.parse(await listed.json()).decisions
  return {
    chain: chain.id,
    question: question.id,
    hostile: hostile.id,
    webhook: webhook.id,
    delivery: `/webhooks/researcher/${webhook.id}/${pushNotificationConfig.id}`,
    decision: decision?.id ?? '',
  }
}
