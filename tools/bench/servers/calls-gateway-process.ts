/**
 * A gateway that runs the echo agent and has `POST /call`, which sends a message by `AgentCalls` and waits for the task. It writes a
 * token for callers to `TOKEN_FILE`.
 */
import { writeFile } from 'node:fs/promises'
import type { AddInterface } from '@parley/gateway/add-routes'
import { z } from 'zod'
import { startDeployment } from '../../interop/deployment.ts'

const testInterface: AddInterface = (app, { calls, authenticator }) => {
  const send = (agent: string | undefined) =>
    app.post(agent === undefined ? '/call' : `/call/${agent}`, async (request, reply) => {
      const caller = await authenticator.authenticate(request)
      const { text } = z.object({ text: z.string() }).parse(JSON.parse(String(request.body)))
      const message = { agent, message: { parts: [{ kind: 'text' as const, text }] } }
      const { task } = await calls.as(request, caller).send(message, { waitMs: 20_000 })
      return reply
        .type('application/json')
        .send(JSON.stringify({ status: task.status, artifacts: task.artifacts }))
    })
  send('echo')
  send(undefined)
}

const deployment = await startDeployment(['../tools/bench/support/echo'], {}, { testInterface })
await writeFile(process.env['TOKEN_FILE'] ?? '', deployment.token)
console.error(JSON.stringify({ address: deployment.gateway.replace(/\/$/, '') }))
process.on('SIGTERM', () => void deployment[Symbol.asyncDispose]().then(() => process.exit(0)))
