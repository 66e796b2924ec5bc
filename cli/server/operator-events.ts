import { ConnectionError, RpcError } from '@parley/client/internal/rpc-error'
import { Interrupted } from '../terminal/interrupt.ts'
import type { ServerConnection } from './server-connection.ts'

export interface SseEvent {
  type: string
  data: string
}

/** Follows a stream of events and connects again after an interruption, until the signal ends it. */
export async function* followSse(
  { url, token }: Pick<ServerConnection, 'url' | 'token'>,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<SseEvent> {
  let lastId = ''
  try {
    for (;;) {
      const headers: Record<string, string> = { accept: 'text/event-stream' }
      if (token !== undefined) headers['authorization'] = `Bearer ${await token()}`
      if (lastId !== '') headers['last-event-id'] = lastId
      const response = await fetch(`${url}${path}`, { headers, signal, redirect: 'manual' }).catch(
        (error: unknown) => {
          throw signal.aborted ? error : new ConnectionError(url, error)
        },
      )
      if (!response.ok || response.body === null) {
        const message = `${url}${path}: HTTP ${response.status}`
        throw new RpcError({ code: 0, status: response.status, message, data: {}, headers: response.headers })
      }
      for await (const { id, ...event } of eventsIn(response.body)) {
        if (id !== '') lastId = id
        yield event
      }
    }
  } catch (error) {
    if (!(signal.reason instanceof Interrupted)) throw error
  }
}

async function* eventsIn(body: ReadableStream<Uint8Array>): AsyncGenerator<SseEvent & { id: string }> {
  let text = ''
  const decoder = new TextDecoder()
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true })
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(frame)?.[1] ?? ''
      if (field('data') !== '') yield { id: field('id'), type: field('event'), data: field('data') }
    }
  }
}
