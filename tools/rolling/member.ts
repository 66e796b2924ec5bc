import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const root = path.join(import.meta.dirname, '..', '..')

/** A process of the house, as an operator starts it. */
export interface Member extends AsyncDisposable {
  /** SIGTERM, its end, a new one in its place, until that is ready. */
  restart(): Promise<void>
}

export async function startMember(
  args: string[],
  port: number,
  env: Record<string, string>,
): Promise<Member> {
  let child = await started(args, port, env)
  const stop = async () => {
    if (child.exitCode !== null) return
    const over = once(child, 'exit')
    child.kill('SIGTERM')
    await over
  }
  return {
    restart: async () => {
      await stop()
      if (child.exitCode !== 0) throw new Error(`${args.join(' ')} ended with ${child.exitCode}`)
      child = await started(args, port, env)
    },
    [Symbol.asyncDispose]: stop,
  }
}

async function started(args: string[], port: number, env: Record<string, string>): Promise<ChildProcess> {
  const bin = path.join(root, 'cli', 'bin.mjs')
  const child = spawn(process.execPath, [bin, ...args], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env, HOST: '127.0.0.1', PORT: String(port) },
  })
  for (let attempt = 0; attempt < 600; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended with ${child.exitCode}`)
    const answer = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    await answer?.body?.cancel()
    if (answer?.ok === true) return child
    await wait(100)
  }
  child.kill('SIGKILL')
  throw new Error(`${args.join(' ')} is not ready after a minute`)
}

export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as { port: number }).port)
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}
