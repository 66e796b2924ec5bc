import { type Answer, send, textAt, valueAt } from '../http.ts'
import type { Recorder } from '../recorder.ts'
import { encoded, payment, type Requirements, walletAddress } from '../wallet.ts'
import { bearer, type Client, ids, rpc, settled, text, type World } from '../world.ts'

/** A paid agent: 402, payments, sessions, the page of a session, the ledger. */
export async function payments(recorder: Recorder, world: World): Promise<void> {
  const { agents, gateway } = world.deployment
  const targets = { paid: `${agents['paid']}`, 'paid through the gateway': `${gateway}/agents/paid` }
  let nonces = 0
  for (const [name, url] of Object.entries(targets)) {
    const alice = await world.client(recorder, `alice at ${name}`)
    const bob = await world.client(recorder, `bob at ${name}`)
    const parts = { recorder, name, url, alice, bob, id: ids(`payments at ${name}`), nonce: () => ++nonces }
    const asked = await unpaid(parts)
    await paid(parts, asked)
    await midTask(parts)
    await sessions(parts)
    await capture(parts, asked)
    await ledger(parts, world)
  }
  await free(recorder, world)
}

interface Parts {
  recorder: Recorder
  name: string
  url: string
  alice: Client
  bob: Client
  id: () => string
  nonce: () => number
}

async function unpaid({ recorder, name, url, alice, id }: Parts): Promise<Requirements> {
  const call = (title: string, method: string, params: object, headers: Record<string, string> = {}) => {
    const sent = rpc(`${url}/`, alice, method, params)
    return recorder.exchange(`${title} at ${name}`, { ...sent, headers: { ...sent.headers, ...headers } })
  }
  await call('unpaid send', 'message/send', text(id(), 'rain?'))
  await call('unpaid stream', 'message/stream', text(id(), 'rain?'))
  await call(
    'unpaid send of a dearer skill',
    'message/send',
    text(id(), 'rain?', { metadata: { skill_id: 'dear' } }),
  )
  await call('payment that is not base64', 'message/send', text(id(), 'rain?'), { 'x-payment': '§' })
  await call('payment that is not JSON', 'message/send', text(id(), 'rain?'), { 'x-payment': 'aGVsbG8=' })
  const version = encoded({ x402Version: 9 })
  await call('payment of an unknown version', 'message/send', text(id(), 'rain?'), { 'x-payment': version })
  const scheme = encoded({ x402Version: 1, scheme: 'upto', network: 'base-sepolia', payload: {} })
  await call('payment of another scheme', 'message/send', text(id(), 'rain?'), { 'x-payment': scheme })
  await call('unknown session', 'message/send', text(id(), 'rain?'), { 'x-payment-session': id() })
  const inMetadata = text(id(), 'rain?', { metadata: { payment_session_id: id() } })
  await call('unknown session in metadata', 'message/send', inMetadata)
  await call('refused before the payment', 'message/send', { message: {} })
  return requirementsOf(await send(rpc(`${url}/`, alice, 'message/send', text(id(), 'rain?'))))
}

/** The body has the network name of version 1; the header has the name that is signed. */
function requirementsOf(answer: Answer): Requirements {
  const at = answer.headers.findIndex((name) => name.toLowerCase() === 'payment-required')
  const body = Buffer.from(answer.headers[at + 1] ?? '', 'base64')
  const asked = { ...answer, body }
  const field = (...keys: string[]) => textAt(asked, 'accepts', 0, ...keys)
  return {
    network: field('network'),
    asset: field('asset'),
    amount: field('amount'),
    payTo: field('payTo'),
    extra: { name: field('extra', 'name'), version: field('extra', 'version') },
  }
}

async function paid({ recorder, name, url, alice, id, nonce }: Parts, asked: Requirements): Promise<void> {
  const pay = async (title: string, content: string, header: string, payload: object) => {
    const sent = rpc(`${url}/`, alice, 'message/send', text(id(), content))
    const headers = { ...sent.headers, [header]: encoded(payload) }
    const answer = await recorder.exchange(`${title} at ${name}`, { ...sent, headers })
    const task = valueAt(answer, 'result', 'id')
    if (typeof task !== 'string') return
    await settled(`${url}/`, alice, task)
    await recorder.exchange(
      `${title} at ${name}: the task`,
      rpc(`${url}/`, alice, 'tasks/get', { task_id: task }),
    )
  }
  const once = await payment(asked, nonce())
  await pay('paid send', 'rain?', 'x-payment', once)
  await pay('the same payment again', 'rain?', 'x-payment', once)
  await pay('paid send with version 2', 'rain?', 'payment-signature', await payment(asked, nonce()))
  const one = await payment(asked, nonce())
  const version1 = { x402Version: 1, scheme: 'exact', network: 'base-sepolia', payload: one.payload }
  await pay('paid send with version 1', 'rain?', 'x-payment', version1)
  await pay('payment of too little', 'rain?', 'x-payment', await payment({ ...asked, amount: '1' }, nonce()))
  await pay(
    'payment to another',
    'rain?',
    'x-payment',
    await payment({ ...asked, payTo: walletAddress }, nonce()),
  )
  await pay(
    'payment that has expired',
    'rain?',
    'x-payment',
    await payment(asked, nonce(), { validBefore: 1_000_000 }),
  )
  const good = await payment(asked, nonce())
  const forged = { ...good, payload: { ...good.payload, signature: `0x${'11'.repeat(64)}1b` } }
  await pay('forged payment', 'rain?', 'x-payment', forged)
  await pay('paid work that fails', 'fail', 'x-payment', await payment(asked, nonce()))
  const sent = rpc(`${url}/`, alice, 'message/stream', text(id(), 'rain?'))
  const headers = { ...sent.headers, 'x-payment': encoded(await payment(asked, nonce())) }
  await recorder.exchange(`paid stream at ${name}`, { ...sent, headers })
}

async function midTask({ recorder, name, url, alice, id, nonce }: Parts): Promise<void> {
  const at = `${url}/`
  const answer = await send(rpc(at, alice, 'message/send', text(id(), 'more')))
  const first = { ...rpc(at, alice, 'message/send', text(id(), 'more')) }
  const asked = requirementsOf(answer)
  const headers = { ...first.headers, 'x-payment': encoded(await payment(asked, nonce())) }
  const begun = await recorder.exchange(`send that asks for more at ${name}`, { ...first, headers })
  const task = textAt(begun, 'result', 'id')
  await settled(at, alice, task)
  await recorder.exchange(
    `task that asks for more at ${name}`,
    rpc(at, alice, 'tasks/get', { task_id: task }),
  )
  const more = rpc(at, alice, 'message/send', text(id(), 'here', { taskId: task }))
  const refused = await recorder.exchange(`unpaid answer at ${name}`, more)
  if (refused.status !== 402) return
  const paidMore = encoded(await payment(requirementsOf(refused), nonce()))
  const next = rpc(at, alice, 'message/send', text(id(), 'here', { taskId: task }))
  await recorder.exchange(`paid answer at ${name}`, {
    ...next,
    headers: { ...next.headers, 'x-payment': paidMore },
  })
  await settled(at, alice, task)
  await recorder.exchange(
    `task that was paid twice at ${name}`,
    rpc(at, alice, 'tasks/get', { task_id: task }),
  )
}

async function sessions({ recorder, name, url, alice, bob, id }: Parts): Promise<void> {
  const start = (title: string, body: unknown, headers: Record<string, string> = bearer(alice.token)) =>
    recorder.exchange(`session: ${title} at ${name}`, {
      method: 'POST',
      url: `${url}/api/start-payment-session`,
      headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
      body,
    })
  const session = await start('start', undefined)
  hideCapture(recorder, session, `capture at ${name}`)
  const dear = await start('start for a skill', { skill_id: 'dear' })
  hideCapture(recorder, dear, `capture of dear at ${name}`)
  await start('without a token', undefined, {})
  await start('unknown skill', { skill_id: 'nothing' })
  await start('unknown network', { network: 'eip155:1' })
  await start('unknown asset', { asset: 'gold' })
  await start('missing task', { task_id: id() })
  await start('malformed task', { task_id: 'one' })
  await start('a list', [])
  await start('not JSON', '{')
  const sessionId = textAt(session, 'session_id')
  const status = (title: string, path: string, headers: Record<string, string> = bearer(alice.token)) =>
    recorder.exchange(`${title} at ${name}`, {
      url: `${url}/api/payment-status/${path}`,
      headers,
    })
  await status('session status: pending', sessionId)
  await status('session status: in upper case', sessionId.toUpperCase())
  await status('session status: of another caller', sessionId, bearer(bob.token))
  await status('session status: without a token', sessionId, {})
  await status('session status: of a missing session', id())
  await status('session status: of a malformed id', 'one')
  await status('session status: with a malformed wait', `${sessionId}?wait=perhaps`)
  const sent = rpc(`${url}/`, alice, 'message/send', text(id(), 'rain?'))
  const headers = { ...sent.headers, 'x-payment-session': sessionId }
  await recorder.exchange(`send with a session that is not paid at ${name}`, { ...sent, headers })
}

function hideCapture(recorder: Recorder, session: Answer, name: string): string {
  const token = textAt(session, 'capture_url').split('/').at(-1) ?? ''
  recorder.hide(token, name)
  return token
}

/** The pages for a person who pays a session. */
async function capture({ recorder, name, url, alice, id, nonce }: Parts, asked: Requirements): Promise<void> {
  const begun = await send({
    method: 'POST',
    url: `${url}/api/start-payment-session`,
    headers: bearer(alice.token),
  })
  const token = hideCapture(recorder, begun, `token of the page at ${name}`)
  const sessionId = textAt(begun, 'session_id')
  const page = `${url}/pay/${token}`
  const body = (html: string) =>
    html
      .replace(/nonce-[\w+/=-]+/g, 'nonce-<nonce>')
      .replace(/nonce="[^"]+"/g, 'nonce="<nonce>"')
      .replace(/\d\d? (minutes|seconds)/g, '<integer> $1')
  const get = (title: string, at: string) => recorder.exchange(`${title} at ${name}`, { url: at }, { body })
  await get('page: of a session', page)
  await get('page: after a refusal', `${page}?refused=payment_required`)
  await get('page: of an unknown token', `${url}/pay/nothing`)
  await get('page: data of a session', `${page}/session`)
  await get('page: data of an unknown token', `${url}/pay/nothing/session`)
  const post = (
    title: string,
    at: string,
    type: string,
    content: unknown,
    headers: Record<string, string> = {},
  ) =>
    recorder.exchange(
      `page: ${title} at ${name}`,
      {
        method: 'POST',
        url: at,
        headers: { 'content-type': type, ...headers },
        body: content,
      },
      { body },
    )
  await post('empty form', `${page}/form`, 'application/x-www-form-urlencoded', '')
  await post(
    'malformed payment in the form',
    `${page}/form`,
    'application/x-www-form-urlencoded',
    'payment=x',
  )
  await post('payment without a body', page, 'application/json', {})
  await post('payment of an unknown token', `${url}/pay/nothing`, 'application/json', {})
  await post('payment', page, 'application/json', {}, { 'x-payment': encoded(await payment(asked, nonce())) })
  await post(
    'payment again',
    page,
    'application/json',
    {},
    { 'x-payment': encoded(await payment(asked, nonce())) },
  )
  await get('page: of a paid session', page)
  const headers = bearer(alice.token)
  await recorder.exchange(`session status: paid at ${name}`, {
    url: `${url}/api/payment-status/${sessionId}?wait=true`,
    headers,
  })
  const sent = rpc(`${url}/`, alice, 'message/send', text(id(), 'rain?'))
  const withSession = { ...sent, headers: { ...sent.headers, 'x-payment-session': sessionId } }
  const answer = await recorder.exchange(`send with a paid session at ${name}`, withSession)
  await settled(`${url}/`, alice, textAt(answer, 'result', 'id'))
  const again = rpc(
    `${url}/`,
    alice,
    'message/send',
    text(id(), 'rain?', { metadata: { payment_session_id: sessionId } }),
  )
  await recorder.exchange(`send with a spent session at ${name}`, again)
  await recorder.exchange(`test wallet at ${name}`, { url: `${url}/api/test-wallet/${walletAddress}` })
  await recorder.exchange(`test wallet of no address at ${name}`, { url: `${url}/api/test-wallet/0x1` })
}

async function ledger({ recorder, name, url, alice }: Parts, { callers }: World): Promise<void> {
  const list = (title: string, path: string, headers: Record<string, string>) =>
    recorder.exchange(`${title} at ${name}`, { url: `${url}${path}`, headers })
  const operator = bearer(callers.operator.token)
  await list('ledger: without a token', '/payments', {})
  await list('ledger: of a caller', '/payments', bearer(alice.token))
  await list('ledger: of the operator', '/payments', operator)
  await list('ledger: settled', '/payments?state=settled&limit=1', operator)
  await list('ledger: unknown state', '/payments?state=odd', operator)
  await list('ledger: limit of 0', '/payments?limit=0', operator)
  const found = await send({ url: `${url}/payments`, headers: operator })
  const id = valueAt(found, 'payments', 0, 'payment_id')
  const change = (title: string, path: string, body: unknown, headers = operator) =>
    recorder.exchange(`ledger: ${title} at ${name}`, {
      method: 'POST',
      url: `${url}/payments/${path}`,
      headers: { ...headers, 'content-type': 'application/json' },
      body,
    })
  await change('refund of a missing payment', 'nothing/refunded', {})
  await change('refund with a malformed hash', `${String(id)}/refunded`, { tx_hash: 'x' })
  await change('refund by a caller', `${String(id)}/refunded`, {}, bearer(alice.token))
  await change('refund', `${String(id)}/refunded`, { tx_hash: `0x${'ab'.repeat(32)}` })
  await change('refund again', `${String(id)}/refunded`, {})
  await change('decision on a decided payment', `${String(id)}/decide`, { settled: true })
  await change('decision without a body', `${String(id)}/decide`, {})
}

/** An agent without a price. */
async function free(recorder: Recorder, world: World): Promise<void> {
  const { agents, gateway } = world.deployment
  const alice = await world.client(recorder, 'alice')
  for (const [name, url] of Object.entries({ echo: agents['echo'], gateway: `${gateway}/agents/echo` })) {
    const headers = bearer(alice.token)
    const start = { method: 'POST', url: `${url}/api/start-payment-session` }
    await recorder.exchange(`session of a free agent at ${name}`, { ...start, headers })
    await recorder.exchange(`session of a free agent at ${name} without a token`, start)
    await recorder.exchange(`session status of a free agent at ${name}`, {
      url: `${url}/api/payment-status/x`,
      headers,
    })
    await recorder.exchange(`ledger of a free agent at ${name}`, { url: `${url}/payments`, headers })
  }
}
