import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Cluster } from '@parley/e2e/harness/cluster'
import type { ParleyProcess } from '@parley/e2e/harness/parley-process'
import { patiently } from './patiently.ts'

export interface Packer {
  slug: string
  /** A tool that no other agent has, so that only this agent can process messages that require it. */
  tool: string
  process: ParleyProcess
}

export interface FailoverCluster extends AsyncDisposable {
  /** Address of the gateway. */
  url: string
  /** Best match first. */
  agents: Packer[]
  /** Folder for the files in which handlers record their work. */
  notes: string
  /** Gets a token for the development client. */
  token: () => Promise<string>
}

const agentsCount = 3

/**
 * A gateway and three agents with the same kind of skill, each with its own key and database, on SQLite.
 * @param logs folder for one log file per process
 */
export async function startFailoverCluster(logs?: string): Promise<FailoverCluster> {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(
    await Cluster.start({
      gateways: 1,
      logs,
      restarts: true,
      settings: { RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' },
      agentSettings: { TRUSTED_PROXIES: '127.0.0.1' },
    }),
  )
  const { url } = cluster
  const notes = path.join(cluster.folder, 'notes')
  mkdirSync(notes)
  const agents: Packer[] = []
  for (let number = 1; number <= agentsCount; number += 1) {
    const slug = `packer-${number}`
    const process = await cluster.startAgent({
      name: slug,
      data: slug,
      source: path.join(import.meta.dirname, 'packer'),
      settings: {
        OAUTH_AUDIENCES: `${url}/agents/${slug}`,
        FAILOVER_NUMBER: String(number),
        FAILOVER_NOTES: notes,
      },
    })
    await cluster.admit(slug)
    agents.push({ slug, tool: `table-${number}`, process })
  }
  const tokens = cluster.developmentToken()
  await patiently(() => tokens.get())
  const resources = stack.move()
  const parts = { url, agents, notes, token: () => tokens.get() }
  return { ...parts, [Symbol.asyncDispose]: () => resources.disposeAsync() }
}
