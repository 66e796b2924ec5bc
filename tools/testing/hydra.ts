import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { homedir } from 'node:os'
import path from 'node:path'

/** The Ory Hydra that `npm run hydra` builds. */
export const hydraVersion = 'v2.3.0'

export function hydraBinary(): string {
  const cache = process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache')
  return path.join(cache, 'parley', `hydra-${hydraVersion}`, 'hydra')
}

/** Whether the suites that need Ory Hydra can run. */
export function hydraIsThere(): boolean {
  return Boolean(process.env['HYDRA_ADMIN_URL']) || existsSync(hydraBinary())
}

/** A running Ory Hydra server. Its addresses have no trailing slash. */
export interface Hydra extends AsyncDisposable {
  adminUrl: string
  publicUrl: string
}

const startMs = 20_000

/** Uses the Hydra at HYDRA_ADMIN_URL and HYDRA_PUBLIC_URL, or starts one in memory on free ports of this machine. */
export async function startHydra(): Promise<Hydra> {
  const { HYDRA_ADMIN_URL: adminUrl, HYDRA_PUBLIC_URL: publicUrl } = process.env
  if (!adminUrl) return startBinary()
  if (!publicUrl) throw new Error('HYDRA_PUBLIC_URL must be set together with HYDRA_ADMIN_URL')
  const trim = (url: string) => url.replace(/\/+$/, '')
  return {
    adminUrl: trim(adminUrl),
    publicUrl: trim(publicUrl),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}

async function startBinary(): Promise<Hydra> {
  const [publicPort, adminPort] = await freePorts()
  const [publicUrl, adminUrl] = [publicPort, adminPort].map((port) => `http://127.0.0.1:${port}`) as [
    string,
    string,
  ]
  const child = spawn(hydraBinary(), ['serve', 'all', '--dev'], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      HOME: process.env['HOME'],
      DSN: 'memory',
      LOG_LEVEL: 'error',
      SQA_OPT_OUT: 'true',
      SECRETS_SYSTEM: 'secret of a Hydra for one test run',
      SERVE_PUBLIC_HOST: '127.0.0.1',
      SERVE_PUBLIC_PORT: String(publicPort),
      SERVE_ADMIN_HOST: '127.0.0.1',
      SERVE_ADMIN_PORT: String(adminPort),
      URLS_SELF_ISSUER: publicUrl,
      URLS_LOGIN: `${publicUrl}/login`,
      URLS_CONSENT: `${publicUrl}/consent`,
    },
  })
  const stop = () => stopChild(child)
  try {
    await untilReady(adminUrl, child)
  } catch (error) {
    await stop()
    throw error
  }
  return { adminUrl, publicUrl, [Symbol.asyncDispose]: stop }
}

async function untilReady(adminUrl: string, child: ChildProcess): Promise<void> {
  const end = performance.now() + startMs
  while (performance.now() < end) {
    if (child.exitCode !== null) throw new Error(`Hydra exited with ${child.exitCode}`)
    const answer = await fetch(`${adminUrl}/health/ready`, { signal: AbortSignal.timeout(1000) }).catch(
      () => null,
    )
    await answer?.body?.cancel()
    if (answer?.ok === true) return
    await new Promise((done) => setTimeout(done, 100))
  }
  throw new Error('Hydra is not ready')
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGKILL')
  await ended
}

/** Finds two free ports. */
async function freePorts(): Promise<[number, number]> {
  const servers = [createServer(), createServer()] as const
  await Promise.all(servers.map((server) => once(server.listen(0, '127.0.0.1'), 'listening')))
  const [one, other] = servers.map((server) => (server.address() as AddressInfo).port) as [number, number]
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return [one, other]
}
