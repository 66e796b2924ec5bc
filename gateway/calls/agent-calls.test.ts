import type { FastifyInstance } from 'fastify'
import { expect, it } from 'vitest'
import { z } from 'zod'
import type { InterfaceParts } from '../add-routes.ts'
import { agent, bearer, gateway, gatewayForEachTest } from '../testing.ts'
import type { AgentMessage } from './agent-calls.ts'

gatewayForEachTest({}, { testInterface })

/** An interface with its own address, `/test`, that calls agents. */
function testInterface(app: FastifyInstance, { calls, gatewayUrl, authenticator }: InterfaceParts): void {
  app.post('/test', async (request, reply) => {
    const caller = await authenticator.authenticateAt(
      { names: [`${gatewayUrl}/mcp`], requiresAudience: false },
      request,
    )
    const { waitMs, ...message } = JSON.parse(String(request.body)) as AgentMessage & { waitMs: number }
    return reply.send(await calls.as(request, caller).send(message, { waitMs }))
  })
}

async function send(body: object, headers: Record<string, string> = {}) {
  const response = await fetch(`${gateway().addresses.public}/test`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: bearer('alice'), ...headers },
    body: JSON.stringify(body),
  })
  return { status: response.status, json: sentTask.parse(await response.json()) }
}

const sentTask = z.looseObject({})

const hello = { message: { parts: [{ kind: 'text', text: 'hello' }] }, waitMs: 0 }

it('returns the task, its agent and the decision of a message without an agent', async () => {
  const one = await agent('greeter', 'says hello')
  const { json } = await send(hello)
  expect(json).toMatchObject({ agent: one.slug, task: { status: { state: 'submitted' } } })
  expect(json['decisionId']).toMatch(/^[\w-]{8,}$/)
})
