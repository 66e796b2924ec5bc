import { header } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import type { World } from '../world.ts'

const figures = [
  'score',
  'estimated_latency_ms',
  'queue_depth',
  'active_tasks',
  'latency_p50_ms',
  'latency_p95_ms',
]

/** Only names and help lines, because the values change. */
const metricNames = (text: string) =>
  `${text
    .split('\n')
    .filter((line) => line.startsWith('#'))
    .join('\n')}\n`

export async function discovery(recorder: Recorder, { deployment, external }: World): Promise<void> {
  const { gateway, agents, bare } = deployment
  const get = (title: string, url: string, headers?: Record<string, string>) =>
    recorder.exchange(title, { url, ...(headers && { headers }) }, { figures })
  const own = {
    ...agents,
    'echo through the gateway': `${gateway}/agents/echo`,
    gateway,
    'a bare gateway': bare,
  }
  for (const [name, url] of Object.entries(own)) {
    const card = await get(`agent card of ${name}`, `${url}/.well-known/agent.json`)
    const etag = header(card, 'etag') ?? ''
    await get(`agent card of ${name}, not modified`, `${url}/.well-known/agent.json`, {
      'if-none-match': etag,
    })
    await get(`skills of ${name}`, `${url}/agent/skills`)
    await get(`health of ${name}`, `${url}/health`)
    await get(`a skill of ${name} by its id`, `${url}/agent/skills/echo`)
    await get(`a missing skill of ${name}`, `${url}/agent/skills/nothing`)
    await get(`documentation of a missing skill of ${name}`, `${url}/agent/skills/nothing/documentation`)
    await get(`DID resolution at ${name} without a DID`, `${url}/did/resolve`)
    await get(`DID resolution at ${name} of a value that is not a DID`, `${url}/did/resolve?did=nobody`)
    await get(`DID resolution at ${name} of an unknown DID`, `${url}/did/resolve?did=${external.did}`)
    await get(`/docs at ${name}`, `${url}/docs`)
    await recorder.exchange(`metrics of ${name}`, { url: `${url}/metrics` }, { body: metricNames })
  }
  await get('skill by its name', `${agents['echo']}/agent/skills/Plain%20echo`)
  await get('documentation of a skill', `${agents['echo']}/agent/skills/echo/documentation`)
  await get(
    'documentation of a skill without documentation',
    `${agents['echo']}/agent/skills/plain/documentation`,
  )
  await get('skill of one agent at the gateway', `${gateway}/agent/skills/echo?agent=echo`)
  await get('skill of another agent at the gateway', `${gateway}/agent/skills/echo?agent=plain`)
  await get('DID document of the gateway', `${gateway}/.well-known/did.json`)
  await get('DID document of a gateway without identity', `${bare}/.well-known/did.json`)
  await get('DID document at an agent', `${agents['echo']}/.well-known/did.json`)
  await resolution(recorder, deployment)
}

async function resolution(recorder: Recorder, { gateway, agents }: World['deployment']): Promise<void> {
  const { did } = await identityOf(`${agents['echo']}/.well-known/agent.json`)
  const { did: ofGateway } = await identityOf(`${gateway}/.well-known/agent.json`)
  for (const [name, url] of Object.entries({ echo: agents['echo'], gateway })) {
    const post = (title: string, body: unknown, type = 'application/json') =>
      recorder.exchange(`${title} at ${name}`, {
        method: 'POST',
        url: `${url}/did/resolve`,
        headers: { 'content-type': type },
        body,
      })
    await recorder.exchange(`DID of echo by GET at ${name}`, { url: `${url}/did/resolve?did=${did}` })
    await post('DID of echo by POST', { did })
    await post('DID of the gateway', { did: ofGateway })
    await post('did:key', { did: 'did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK' })
    await post('malformed did:key', { did: 'did:key:z6Mk' })
    await post('no DID', {})
    await post('DID that is a number', { did: 7 })
    await post('DID in a body that is not JSON', 'did=nobody')
    await post('DID in a form', `did=${did}`, 'application/x-www-form-urlencoded')
  }
}

async function identityOf(url: string): Promise<{ did: string }> {
  const card: unknown = await (await fetch(url)).json()
  const did = typeof card === 'object' && card !== null && 'did' in card ? String(card.did) : ''
  return { did }
}
