import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { type GatewayAppOptions, startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { z } from 'zod'

const clientAnswer = z.object({ client_id: z.string(), client_secret: z.string() })
const tokenAnswer = z.object({ access_token: z.string() })
const entry = z.looseObject({ token_resource: z.string() })

/** A gateway with some agents, or without agents. */
export interface InteropDeployment extends AsyncDisposable {
  /** With a final slash. */
  gateway: string
  /** DATA_DIR, and the folder of the deployment. */
  dataDir: string
  folder: string
  /** A token of a client that has registered at the gateway's OAuth server. */
  token: string
  /** The address of an agent itself. */
  direct(slug: string): string
  /** A token with the scope agent:read only. */
  limitedToken(): Promise<string>
  /** A token only for this agent, which it accepts at its own address. */
  tokenFor(slug: string): Promise<string>
}

/**
 * @param agents folders, relative to `agents/`
 * @param more further settings
 */
export async function startDeployment(
  agents: readonly string[],
  more: Readonly<Record<string, string>> = {},
  options: Pick<GatewayAppOptions, 'testInterface'> = {},
): Promise<InteropDeployment> {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-interop-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const agentsDir = path.join(folder, 'agents')
  await mkdir(agentsDir)
  const source = path.resolve(import.meta.dirname, '..', '..', 'agents')
  for (const name of agents)
    await symlink(path.resolve(source, name), path.join(agentsDir, path.basename(name)))
  const dataDir = path.join(folder, 'data')
  const settings = gatewayConfig({
    PATH: process.env['PATH'],
    HOME: folder,
    PORT: '0',
    LOG_LEVEL: 'silent',
    DATA_DIR: dataDir,
    RATE_LIMIT_PER_MINUTE: '0',
    REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
    WEBHOOK_ALLOWED_HOSTS: '127.0.0.1',
    SERVICE_GATEWAY_DID_SEED: randomBytes(32).toString('base64'),
    SERVICE_GATEWAY_AUTHOR: 'interop',
    SERVICE_GATEWAY_NAME: 'gateway',
    CARD_ES256: 'yes',
    ...more,
  })
  const log = makeLog({ level: 'silent', name: 'interop' })
  const gateway = stack.use(await startGatewayApp({ settings, log, agentsDir, ...options }))
  await gateway.supervisor?.settled()
  const url = gateway.addresses.public
  const tokens = await register(url, dataDir)
  const token = await tokens()
  const running = stack.move()
  return {
    gateway: `${url}/`,
    dataDir,
    folder,
    token,
    direct: (slug) => `${gateway.registry.bySlug(slug)?.url.replace(/\/$/, '')}/`,
    limitedToken: () => tokens(undefined, 'agent:read'),
    tokenFor: async (slug) => {
      const answer = await fetch(`${url}/registry/agents/${slug}`)
      return await tokens(entry.parse(await answer.json()).token_resource)
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  }
}

/** Registers a client at the gateway's OAuth server. The result requests a token, for the resource if there is one. */
async function register(
  gateway: string,
  dataDir: string,
): Promise<(resource?: string, scope?: string) => Promise<string>> {
  const initial = await readFile(path.join(dataDir, 'oauth', 'initial-access-token'), 'utf8')
  const registered = await fetch(`${gateway}/oauth2/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: 'interop', grant_types: ['client_credentials'] }),
  })
  const { client_id: id, client_secret: secret } = clientAnswer.parse(await registered.json())
  const credentials = [id, secret].map(encodeURIComponent).join(':')
  return async (resource, scope = 'agent:read agent:write') => {
    const answer = await fetch(`${gateway}/oauth2/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        scope,
        ...(resource !== undefined && { resource }),
      }),
    })
    return tokenAnswer.parse(await answer.json()).access_token
  }
}
