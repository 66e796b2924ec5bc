import type { Recorder } from '../recorder.ts'
import { ids, rpc, settled, text, type World } from '../world.ts'

/** Requests to a receiver of webhooks: request line, headers and body of every event. */
export async function webhooks(recorder: Recorder, world: World): Promise<void> {
  const { agents, gateway } = world.deployment
  const [alice, id] = [await world.client(recorder, 'alice'), ids('webhooks')]
  let count = 0
  const hooked = async (
    title: string,
    at: string,
    content: string,
    events: number,
    more: object = {},
    hook = 'hook',
  ) => {
    const path = `/${hook}/${++count}`
    const config = { id: id(), url: `${world.receiver.url}${path}`, ...more }
    const params = text(id(), content, {}, { push_notification_config: config })
    const answer = await recorder.exchange(title, rpc(at, alice, 'message/send', params))
    const task: unknown = JSON.parse(answer.body.toString('utf8'))?.result?.id
    const received = await world.receiver.received(path, events)
    for (const [i, { method, url, headers, body }] of received.entries()) {
      const first = `${method} ${url.replace(/\d+$/, '<n>')} HTTP/1.1`
      recorder.note(`${title}: webhook ${i + 1}`, recorder.message(first, headers, body))
    }
    return typeof task === 'string' ? task : ''
  }
  const echo = `${agents['echo']}/`
  await hooked('a text with a webhook', echo, 'echo hello', 3, { token: 'secret of the receiver' })
  await hooked('a webhook without a token', echo, 'echo hello', 3)
  const authentication = { type: 'http', scheme: 'bearer', bearerFormat: 'opaque', description: 'ours' }
  await hooked('a webhook with authentication', echo, 'echo several', 5, { token: 't', authentication })
  await hooked('a webhook of a file', echo, 'echo file', 3)
  await hooked('a webhook of a failure', echo, 'echo fail', 2)
  await hooked('a webhook of a refusal', echo, 'echo decline', 2)
  await hooked('a webhook of malformed output', echo, 'echo malformed', 2)
  await hooked('a webhook of a receiver that refuses', echo, 'echo hello', 3, {}, 'hook/refusing')
  await hooked('a webhook through the gateway', `${gateway}/agents/echo`, 'echo hello', 3, { token: 't' })
  await hooked('a webhook of a message that names no agent', `${gateway}/`, 'echo hello', 3, { token: 't' })
  const waiting = await hooked('a webhook of a question', echo, 'echo ask', 2)
  await settled(echo, alice, waiting)
  await recorder.exchange(
    'the answer to a question',
    rpc(echo, alice, 'message/send', text(id(), 'Ada', { taskId: waiting })),
  )
  const events = await world.receiver.received(`/hook/${count}`, 5)
  for (const [i, { method, url, headers, body }] of events.slice(2).entries()) {
    const first = `${method} ${url.replace(/\d+$/, '<n>')} HTTP/1.1`
    recorder.note(`the answer to a question: webhook ${i + 1}`, recorder.message(first, headers, body))
  }
}
