import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { answers, freePort } from './port.ts'

/** If false, suites that need Redis are skipped. Their titles contain `(needs redis-server)`. */
export const hasRedis = spawnSync('redis-server', ['--version']).status === 0

export interface RedisServer extends AsyncDisposable {
  url: string
  port: number
  /** Kills the process. All data is lost. */
  kill(): Promise<void>
  /** Starts an empty server again on the same port. */
  restart(): Promise<void>
  /** Sends SIGSTOP; `thaw` sends SIGCONT. */
  freeze(): void
  thaw(): void
}

/** Starts a Redis server without persistence on a free port of this machine. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort()
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-redis-'))
  let child = await start(port, folder)
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    kill,
    restart: async () => {
      await kill()
      child = await start(port, folder)
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    [Symbol.asyncDispose]: async () => {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

async function start(port: number, folder: string): Promise<ChildProcess> {
  const options = { bind: '127.0.0.1', port: String(port), save: '', appendonly: 'no', dir: folder }
  const args = Object.entries(options).flatMap(([name, value]) => [`--${name}`, value])
  const child = spawn('redis-server', args, { stdio: 'ignore' })
  for (let attempt = 0; attempt < 2400; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`redis-server exited with ${child.exitCode}`)
    if (await answers(port)) return child
    await wait(25)
  }
  throw new Error('redis-server does not listen')
}

/** Number of calls of each command since the server started, including those in scripts. */
export async function redisCommands(url: string): Promise<Record<string, number>> {
  const redis = new Redis(url)
  try {
    const info = await redis.info('commandstats')
    const calls = info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)
    return Object.fromEntries([...calls].map(([, name, count]) => [name, Number(count)]))
  } finally {
    redis.disconnect()
  }
}
