import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { freePort } from './port.ts'
import { isInstalled, type PythonEnvironment, pythonOf } from './python.ts'

/** The release of the reference implementation (PyPI package `bindu`) that the suites run. It requires Python 3.12. */
const version = '2026.36.7'

/** The virtual environment into which `npm run bindu` installs it. */
export const bindu = {
  name: `bindu-${version}`,
  packages: [`bindu==${version}`],
  size: '420 MB',
} satisfies PythonEnvironment

/** Whether suites that need the reference implementation can run. Their titles contain `(needs bindu)`. */
export const binduIsThere = () => isInstalled(bindu)

export interface BinduAgent extends AsyncDisposable {
  url: string
  /** The agent's output, for the report of a failed test. */
  output(): string
}

const startMs = 120_000

const skill = `id: echo-v1
name: echo
version: 1.0.0
author: dev@example.com
description: Repeats a text word for word, as an echo
tags: [echo, repeat]
input_modes: [text/plain]
output_modes: [text/plain]
examples: ["Echo this text"]
`

/** An agent of the reference implementation on a free port, with its keys in a temporary folder. */
export async function startBindu(): Promise<BinduAgent> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-bindu-'))
  await mkdir(path.join(folder, 'skills', 'echo'), { recursive: true })
  await writeFile(path.join(folder, 'skills', 'echo', 'skill.yaml'), skill)
  // The agent stores its keys next to the program.
  const program = path.join(folder, 'agent.py')
  await copyFile(fileURLToPath(new URL('./bindu_agent.py', import.meta.url)), program)
  const port = await freePort()
  const child = spawn(pythonOf(bindu), [program, String(port)], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: folder, PYTHONUNBUFFERED: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const exited = once(child, 'exit')
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (output = (output + chunk.toString()).slice(-20_000)))
  const agent: BinduAgent = {
    url: `http://127.0.0.1:${port}`,
    output: () => output,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await exited
      await rm(folder, { recursive: true, force: true })
    },
  }
  for (const until = Date.now() + startMs; Date.now() < until && child.exitCode === null; await wait(100)) {
    const response = await fetch(`${agent.url}/health`).catch(() => undefined)
    if (response?.ok === true) return agent
  }
  await agent[Symbol.asyncDispose]()
  throw new Error(`the agent of the reference implementation did not start:\n${output}`)
}
