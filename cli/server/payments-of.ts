import { RpcError } from '@parley/client/internal/client'
import { readLedger } from '@parley/wire/codecs/parley/payments'
import { type ReadEntry, readEntry, readEntryList } from '@parley/wire/codecs/parley/registry'
import { CommandFailed } from '../terminal/faults.ts'
import { type ServerConnection, slugOf } from './server-connection.ts'

const pageSize = 200
const pagesMax = 500

/** `-` means that the server itself is the agent. */
export const pathOf = (agent: string): string =>
  agent === '-' ? '/payments' : `/agents/${slugOf(agent)}/payments`

export async function paymentsOf(server: ServerConnection, agent: string, state: string): Promise<object[]> {
  const found: object[] = []
  let cursor: number | undefined
  for (let page = 0; page < pagesMax; page += 1) {
    const place = cursor === undefined ? '' : `&cursor=${cursor}`
    const { body } = await server.getJson(`${pathOf(agent)}?state=${state}&limit=${pageSize}${place}`)
    const { payments, nextCursor } = readLedger(body)
    found.push(...payments)
    if (nextCursor === undefined) break
    cursor = nextCursor
  }
  return found
}

/** The payments of all supervised agents; no other agent gets the operator's token. `silent` lists unresponsive agents. */
export async function paymentsOfAll(
  server: ServerConnection,
  state: string,
): Promise<{ payments: object[]; silent: string[] }> {
  const payments: object[] = []
  const silent: string[] = []
  for (const { slug = '' } of await ourAgents(server)) {
    try {
      const found = await paymentsOf(server, slug, state)
      payments.push(...found.map((payment) => ({ agent: slug, ...payment })))
    } catch (error) {
      if (isUnpaid(error)) continue
      if (error instanceof RpcError && (error.status === 401 || error.status === 403)) throw error
      silent.push(slug)
    }
  }
  return { payments, silent }
}

/**
 * Ensures that the operator's own token, fetched for this command, is not sent to an external agent.
 * @throws CommandFailed
 */
export async function requireOurs(
  server: ServerConnection,
  slug: string,
  tokenGiven: boolean,
): Promise<void> {
  if (tokenGiven) return
  const { body } = await server.getJson(`/registry/agents/${slug}`)
  if (readEntry(body).origin === 'supervised') return
  throw new CommandFailed(
    `${slug} is an external agent: pass a token for that agent with --token to read its ledger.`,
  )
}

async function ourAgents(server: ServerConnection): Promise<ReadEntry[]> {
  const agents: ReadEntry[] = []
  let place = ''
  for (let page = 0; page < pagesMax; page += 1) {
    const { body, headers } = await server.getJson(`/registry/agents?limit=${pageSize}${place}`)
    const answer = readEntryList(body)
    agents.push(...answer.agents.map(readEntry))
    const next = answer.nextCursor ?? headers.get('x-next-cursor')
    if (next === null || next === undefined) break
    place = `&cursor=${encodeURIComponent(next)}`
  }
  return agents.filter(({ origin }) => origin === 'supervised')
}

/** An agent without a price has no ledger. */
export function isUnpaid(error: unknown): boolean {
  return error instanceof RpcError && error.status === 404 && error.data['reason'] !== 'agent'
}
