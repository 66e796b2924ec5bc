import { spawn } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { parley, root } from '@parley/e2e/harness/parley-process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type InteropDeployment, startDeployment } from './deployment.ts'
import { commandEnv, join, pythonServers } from './foreign.ts'
import { a2aSdkIsThere } from './python.ts'

describe.skipIf(!a2aSdkIsThere())('an agent of a2a-sdk that is killed (needs a2a-sdk)', () => {
  let deployment: InteropDeployment
  beforeAll(async () => {
    deployment = await startDeployment([])
  })
  afterAll(() => deployment?.[Symbol.asyncDispose]())

  test('the person who waits is informed, the task fails with the reason, and the next message works', async () => {
    const [server] = pythonServers
    if (server === undefined) throw new Error('no server')
    const agent = await server.start()
    await join(agent.url, server.slug, deployment)
    await using waiting = send('calculate 6*7 slowly')
    await expect.poll(() => waiting.progress(), { timeout: 60_000 }).toContain('· Still calculating')
    // SIGKILL.
    await agent[Symbol.asyncDispose]()
    await expect.poll(() => waiting.progress(), { timeout: 60_000 }).toContain('· The agent is not reachable')
    await using _restarted = await server.start(Number(new URL(agent.url).port))
    expect(await waiting.code).toBe(1)
    expect(waiting.progress()).toContain('The agent no longer knows the task. It may have been restarted.')
    const next = await parley(['send', '-', 'calculate 6*7'], options())
    expect(next).toMatchObject({ code: 0, stdout: '6*7 = 42\n' })
  })

  const options = () => ({ cwd: deployment.folder, env: commandEnv(deployment) })

  /** Runs `parley send -`, for which the gateway chooses the agent. */
  function send(text: string) {
    const program = [path.join(root, 'cli', 'bin.mjs'), 'send', '-', text]
    const child = spawn(process.execPath, program, { ...options(), stdio: ['ignore', 'ignore', 'pipe'] })
    const code = once(child, 'exit').then(([number]: unknown[]) => number)
    let printed = ''
    child.stderr.on('data', (chunk: Buffer) => (printed += chunk.toString()))
    return {
      code,
      progress: () => printed,
      [Symbol.asyncDispose]: async () => {
        child.kill('SIGKILL')
        await code
      },
    }
  }
})
