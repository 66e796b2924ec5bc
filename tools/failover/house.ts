import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ClientToken } from '@parley/kit/auth/client-token'
import { admitOwn } from '../chaos/admit-own.ts'
import { KeptProcess } from '../chaos/kept-process.ts'
import { freePort } from '../testing/port.ts'
import { patiently } from './patiently.ts'

export interface Packer {
  slug: string
  /** What it alone has: a message that requires it can go to no other. */
  tool: string
  process: KeptProcess
}

export interface House extends AsyncDisposable {
  /** Address of the gateway. */
  url: string
  /** Best suited first. */
  agents: Packer[]
  /** Where handlers note their work. */
  notes: string
  /** Of the development client. */
  token: () => Promise<string>
}

const agentsCount = 3

/**
 * A gateway with the embedded OAuth server, and three agents that serve the same kind of task, each with a key and a
 * database of its own: all of them processes, on nothing but this machine's disk.
 * @param logs where the processes write to; default: a folder that goes with the house
 */
export async function startHouse(logs?: string): Promise<House> {
  await using stack = new AsyncDisposableStack()
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-failover-'))
  stack.defer(() => rmSync(folder, { recursive: true, force: true }))
  const [notes, logFolder] = [path.join(folder, 'notes'), logs ?? path.join(folder, 'logs')]
  for (const one of [notes, logFolder]) mkdirSync(one, { recursive: true })
  const keep = async (
    role: KeptProcess['role'],
    name: string,
    args: string[],
    env: Record<string, string>,
  ) => {
    const [port, logFile] = [await freePort(), path.join(logFolder, `${name}.log`)]
    const common = { DATA_DIR: path.join(folder, name), RATE_LIMIT_PER_MINUTE: '0', LOG_LEVEL: 'warn' }
    const kept = stack.use(new KeptProcess({ name, role, args, port, env: { ...common, ...env }, logFile }))
    await kept.ready()
    return kept
  }
  const allowed = { REGISTRY_ALLOWED_HOSTS: '127.0.0.1' }
  const gateway = await keep('gateway', 'gateway', ['gateway'], allowed)
  const { url } = gateway
  const dataDir = path.join(folder, 'gateway')
  const initialToken = readFileSync(path.join(dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
  const agents: Packer[] = []
  for (let number = 1; number <= agentsCount; number += 1) {
    const slug = `packer-${number}`
    const process = await keep('agent', slug, ['agent', path.join(import.meta.dirname, 'packer')], {
      GATEWAY_URL: url,
      OAUTH_INITIAL_TOKEN: initialToken,
      OAUTH_AUDIENCES: `${url}/agents/${slug},${url}`,
      TRUSTED_PROXIES: '127.0.0.1',
      FAILOVER_NUMBER: String(number),
      FAILOVER_NOTES: notes,
    })
    await admitOwn(url, slug, dataDir)
    agents.push({ slug, tool: `table-${number}`, process })
  }
  const tokens = developmentToken(dataDir)
  await patiently(() => tokens.get())
  const open = stack.move()
  const parts = { url, agents, notes, token: () => tokens.get() }
  return { ...parts, [Symbol.asyncDispose]: () => open.disposeAsync() }
}

function developmentToken(dataDir: string): ClientToken {
  const file = JSON.parse(readFileSync(path.join(dataDir, 'dev-client.json'), 'utf8')) as Record<
    string,
    string
  >
  const { client_id: clientId = '', client_secret: clientSecret = '', token_url: tokenUrl = '' } = file
  return new ClientToken({ tokenUrl, clientId, clientSecret, scope: 'agent:read agent:write' })
}
