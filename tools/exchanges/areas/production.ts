import { send } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import type { World } from '../world.ts'

/** A gateway in production mode with a rate limit, without agents, identity or origins. */
export async function production(recorder: Recorder, { deployment }: World): Promise<void> {
  const { bare } = deployment
  const json = { 'content-type': 'application/json' }
  const get = (path: string, headers: Record<string, string> = {}) =>
    recorder.exchange(`GET ${path}`, { url: `${bare}${path}`, headers })
  await get('/registry/agents')
  await get('/.well-known/oauth-authorization-server')
  await get('/did/resolve?did=did:web:127.0.0.1')
  await get('/agents/echo/health')
  await recorder.exchange('negotiation without agents', {
    method: 'POST',
    url: `${bare}/agent/negotiation`,
    headers: json,
    body: { task_summary: 'echo a text' },
  })
  await recorder.exchange('a call without a token', {
    method: 'POST',
    url: `${bare}/`,
    headers: json,
    body: { jsonrpc: '2.0', id: 1, method: 'tasks/list' },
  })
  await get('/agent/skills', { origin: 'https://app.example' })
  const limited = async (): Promise<boolean> => (await send({ url: `${bare}/agent/skills` })).status === 429
  for (let sent = 0; sent < 2000 && !(await limited()); sent++);
  await get('/agent/skills/after-too-many')
  await recorder.exchange('a call after too many', {
    method: 'POST',
    url: `${bare}/`,
    headers: json,
    body: { jsonrpc: '2.0', id: 7, method: 'tasks/list' },
  })
  await get('/health')
}
