import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { parley } from '@parley/e2e/harness/parley-process'
import type express from 'express'
import { freePort } from '../testing/port.ts'
import { type PythonEnvironment, pythonOf } from '../testing/python.ts'
import type { InteropDeployment } from './deployment.ts'
import { a2aSdk } from './python.ts'
import { jsV1App } from './servers/js-v1.ts'
import { jsV03App } from './servers/js-v03.ts'

/** An agent built with an SDK of A2A. */
export interface ForeignServer {
  name: string
  /** At the gateway. */
  slug: string
  /** @param port a free port by default */
  start(port?: number): Promise<{ url: string } & AsyncDisposable>
}

const inNode = (app: (url: string) => express.Express) => async (given?: number) => {
  const port = given ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const server = app(url).listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
}

const startMs = 60_000

const inPython = (program: string, environment: PythonEnvironment) => async (given?: number) => {
  const port = given ?? (await freePort())
  const url = `http://127.0.0.1:${port}`
  const file = path.join(import.meta.dirname, 'servers', program)
  const child = spawn(pythonOf(environment), [file, String(port)], { stdio: ['ignore', 'ignore', 'pipe'] })
  const exited = once(child, 'exit')
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors = (errors + chunk.toString()).slice(-2000)))
  const server = {
    url,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await exited
    },
  }
  for (const end = Date.now() + startMs; Date.now() < end && child.exitCode === null; await wait(100)) {
    const card = await fetch(`${url}/.well-known/agent-card.json`).catch(() => undefined)
    if (card?.ok === true) return server
  }
  await server[Symbol.asyncDispose]()
  throw new Error(`${program} did not start: ${errors}`)
}

export const jsServers: readonly ForeignServer[] = [
  { name: 'a2a-js 1.3', slug: 'js-v1', start: inNode(jsV1App) },
  { name: 'a2a-js 0.3.14', slug: 'js-v03', start: inNode(jsV03App) },
]

export const pythonServers: readonly ForeignServer[] = [
  { name: 'a2a-sdk 1.3', slug: 'python-v1', start: inPython('server_v1.py', a2aSdk.v1) },
  { name: 'a2a-sdk 0.3.26', slug: 'python-v03', start: inPython('server_v03.py', a2aSdk.v03) },
]

/** The environment of `parley` commands for the deployment. */
export const commandEnv = ({ folder, dataDir, gateway }: InteropDeployment) => ({
  PATH: process.env['PATH'],
  HOME: folder,
  DATA_DIR: dataDir,
  PUBLIC_URL: gateway,
})

/** `parley register` and `parley admit`, as an operator does. @throws Error with the output */
export async function join(url: string, slug: string, deployment: InteropDeployment): Promise<void> {
  const env = commandEnv(deployment)
  for (const args of [
    ['register', url],
    ['admit', slug],
  ]) {
    const { code, stdout, stderr } = await parley(args, { cwd: deployment.folder, env })
    if (code !== 0) throw new Error(`parley ${args.join(' ')}: ${stdout}${stderr}`)
  }
}
