import { header, type Sent } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { seconds, signed, signerFrom } from '../signing.ts'
import { bearer, type Client, ids, rpc, text, tokenRequest, type World } from '../world.ts'

/** Records how an agent and the gateway check tokens, scopes and signatures. */
export async function authentication(recorder: Recorder, world: World): Promise<void> {
  const { gateway, agents } = world.deployment
  const callers = {
    reader: await world.client(recorder, 'reader', 'agent:read'),
    writer: await world.client(recorder, 'writer', 'agent:write'),
    legacy: await world.client(recorder, 'legacy', 'agent:execute'),
    operator: world.callers.operator,
  }
  const targets = {
    echo: `${agents['echo']}/`,
    'echo through the gateway': `${gateway}/agents/echo`,
    gateway,
  }
  for (const [name, url] of Object.entries(targets)) {
    await scopes(recorder, name, url, callers)
    await tokens(recorder, world, name, url)
    await signatures(recorder, world, name, url)
  }
  await strict(recorder, world)
}

const methods = [
  'message/send',
  'message/stream',
  'tasks/get',
  'tasks/list',
  'tasks/cancel',
  'tasks/feedback',
  'tasks/events',
  'tasks/resubscribe',
  'tasks/pushNotificationConfig/set',
  'tasks/pushNotificationConfig/get',
  'tasks/pushNotificationConfig/list',
  'tasks/pushNotificationConfig/delete',
  'contexts/list',
  'contexts/clear',
  'agent/getAuthenticatedExtendedCard',
]

async function scopes(
  recorder: Recorder,
  name: string,
  url: string,
  callers: Record<string, Client>,
): Promise<void> {
  for (const [caller, client] of Object.entries(callers)) {
    for (const method of methods)
      await recorder.exchange(`${method} at ${name} as ${caller}`, rpc(url, client, method, {}))
  }
}

async function tokens(recorder: Recorder, world: World, name: string, url: string): Promise<void> {
  const { deployment } = world
  const { gateway } = deployment
  const list = (token: string) => rpc(url, { token }, 'tasks/list', {})
  const plain = await world.client(recorder, `plain of ${name}`)
  await recorder.exchange(`a token at ${name}`, list(plain.token))
  const revoke = tokenRequest(gateway, plain, { token: plain.token }, 'revoke')
  await recorder.exchange(`revocation of the token for ${name}`, revoke)
  await recorder.exchange(`a revoked token at ${name}`, list(plain.token))
  const payload = Buffer.from(JSON.stringify({ exp: 1_000_000_000 })).toString('base64url')
  await recorder.exchange(`an expired JWT at ${name}`, list(`eyJhbGciOiJub25lIn0.${payload}.c2ln`))
  await recorder.exchange(`a token of 13,000 characters at ${name}`, list('a'.repeat(13_000)))
  const { headers, ...rest } = list('x')
  await recorder.exchange(`a token in the query at ${name}`, {
    ...rest,
    url: `${url}?access_token=${plain.token}`,
    headers: { 'content-type': headers?.['content-type'] ?? '' },
  })
}

async function signatures(recorder: Recorder, world: World, name: string, url: string): Promise<void> {
  const { signer, callers } = world
  const alice = await world.client(recorder, `client of ${name}`)
  const id = ids(`signatures at ${name}`)
  const sentBy = (client: { token: string }, method: string, params: unknown): Sent & { body: string } => {
    const sent = rpc(url, client, method, params)
    return { ...sent, body: JSON.stringify(sent.body) }
  }
  const list = sentBy(callers.signer, 'tasks/list', { limit: 1, state: 'canceled' })
  const good = signed(signer, { body: list.body })
  const exchange = (title: string, sent: Sent, headers: Record<string, string>) =>
    recorder.exchange(`${title} at ${name}`, { ...sent, headers: { ...sent.headers, ...headers } })
  await exchange('a signed request', list, good)
  await exchange('the same signed request again', list, good)
  await exchange(
    'a signed request for this server',
    list,
    signed(signer, { body: list.body, audience: url.replace(/\/$/, '') }),
  )
  const elsewhere = signed(signer, { body: list.body, audience: 'https://other.example' })
  await exchange('a signed request for another server', list, elsewhere)
  await exchange('a signature of another body', list, signed(signer, { body: `${list.body} ` }))
  await exchange(
    'a signature that is too old',
    list,
    signed(signer, { body: list.body, timestamp: seconds() - 400 }),
  )
  await exchange(
    'a signature of the future',
    list,
    signed(signer, { body: list.body, timestamp: seconds() + 400 }),
  )
  await exchange('a signature that is not base58', list, { ...good, 'x-did-signature': '0OIl' })
  await exchange('a timestamp that is not a number', list, { ...good, 'x-did-timestamp': 'now' })
  await exchange('a DID without signature', list, { 'x-did': signer.did })
  await exchange('another DID', list, { ...good, 'x-did': 'did:parley:nobody:agent:1' })
  await exchange('a signature with another key', list, {
    ...signed(signerFrom(99, 'x'), { body: list.body }),
    'x-did': signer.did,
  })
  const ofAlice = sentBy(alice, 'tasks/list', {})
  await exchange('a signature of a client that is not a DID', ofAlice, signed(signer, { body: ofAlice.body }))
  await exchange('a DID client without signature', list, {})
  const send = sentBy(callers.signer, 'message/send', text(id(), 'echo caller'))
  await exchange('a signed send', send, signed(signer, { body: send.body }))
}

/** An agent that requires signatures from callers with a DID. */
async function strict(recorder: Recorder, { deployment, callers, signer }: World): Promise<void> {
  const id = ids('strict')
  const own = `${deployment.agents['strict']}/`
  for (const [name, url] of Object.entries({ strict: own, gateway: `${deployment.gateway}/agents/strict` })) {
    const sent = rpc(url, callers.signer, 'message/send', text(id(), `count for ${name}`))
    const body = JSON.stringify(sent.body)
    const headers = { ...sent.headers, ...signed(signer, { body }) }
    await recorder.exchange(`unsigned send to strict at ${name}`, sent)
    await recorder.exchange(`signed send to strict at ${name}`, { ...sent, body, headers })
    await recorder.exchange(`signed send to strict at ${name}, replayed`, { ...sent, body, headers })
    await recorder.exchange(`unsigned send of a client that is not a DID at ${name}`, {
      ...rpc(url, callers.developer, 'message/send', text(id(), 'count')),
    })
  }
  await oauthClientOf(recorder, deployment.gateway, callers.signer)
}

async function oauthClientOf(recorder: Recorder, gateway: string, client: Client): Promise<void> {
  const url = `${gateway}/oauth2/clients/${encodeURIComponent(client.clientId)}`
  await recorder.exchange('client metadata without credentials', { url })
  const answer = await recorder.exchange('client metadata with a token', {
    url,
    headers: bearer(client.token),
  })
  if (header(answer, 'content-type') === undefined) throw new Error('client metadata has no content type')
}
