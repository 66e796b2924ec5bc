import { type TestAgent, type TestDefinition, testAgent } from '@parley/agent/testing'
import type { ListedSkill } from '@parley/wire/codecs/parley/skills'
import type { JsonValue } from '@parley/wire/model/task'
import OpenAI, { APIError } from 'openai'
import { z } from 'zod'
import { gateway, identityProvider } from '../testing.ts'

/** Returns a client of the API with a token of this caller. */
export function openAi(
  caller = 'alice',
  options: Partial<ConstructorParameters<typeof OpenAI>[0]> = {},
): OpenAI {
  const apiKey = identityProvider().issue(caller, { scope: 'agent:read agent:write' })
  return new OpenAI({ baseURL: `${gateway().addresses.public}/v1`, apiKey, maxRetries: 0, ...options })
}

const skillList = z.object({ skills: z.array(z.custom<ListedSkill>()) })
const cardOf = (json: unknown) => z.record(z.string(), z.custom<JsonValue>()).parse(json)
const answer = z.looseObject({
  error: z.looseObject({ code: z.string().nullable(), type: z.string(), message: z.string() }).optional(),
  choices: z.array(z.object({ message: z.object({ content: z.string() }) })).optional(),
})

/** Starts an agent and registers it with the gateway. */
export async function startAgent(
  name: string,
  definition: TestDefinition,
  more: object = {},
): Promise<TestAgent> {
  const env = { GATEWAY_URL: gateway().addresses.public }
  const agent = await testAgent(
    { name, ...definition },
    { identityProvider: identityProvider(), env, store: 'memory', drainMs: 50 },
  )
  const card = cardOf(await (await fetch(`${agent.url}/.well-known/agent.json`)).json())
  const { skills } = skillList.parse(await (await fetch(`${agent.url}/agent/skills`)).json())
  await gateway().registry.register({
    name,
    description: `The agent ${name}`,
    url: agent.url,
    card,
    skills,
    owner: name,
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
    ...more,
  })
  return agent
}

export const user = (content: OpenAI.ChatCompletionUserMessageParam['content']) => ({
  role: 'user' as const,
  content,
})
export const assistant = (content: string | null) => ({ role: 'assistant' as const, content })

/** Sends a body that the SDK would not send. */
export async function postRaw(path: string, body: string | object, headers: Record<string, string> = {}) {
  const authorization = `Bearer ${identityProvider().issue('alice', { scope: 'agent:read agent:write' })}`
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, headers: response.headers, json: answer.parse(await response.json()) }
}

/** Returns the error of a call of the SDK. */
export async function errorOf(call: Promise<unknown>): Promise<APIError> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof APIError) return error
  throw new Error('The call did not fail with an error of the API', { cause: error })
}
