/**
 * The operations that the suite performs with a client of an SDK. The SDKs of 0.3 have no list of tasks, and the one of Python
 * no list of webhooks.
 */
export type Operation =
  | 'card'
  | 'send'
  | 'stream'
  | 'subscribe'
  | 'get'
  | 'list'
  | 'cancel'
  | 'setPush'
  | 'getPush'
  | 'listPush'
  | 'deletePush'

export interface Given {
  text?: string
  /** Whether a send waits. Default: true. */
  waits?: boolean
  /** The ID of the task. */
  id?: string
  contextId?: string
  /** The URL of the webhook. */
  url?: string
  token?: string
  configId?: string
}

/** A client of an SDK, connected to one address with one token. */
export interface InteropClient extends AsyncDisposable {
  /** Resolves with the answer as the JSON of the dialect; a stream is a list. @throws the error of the SDK */
  call(operation: Operation, given?: Given): Promise<unknown>
}

export interface ClientKind {
  /** Package, version and binding. */
  name: string
  dialect: '1.0' | '0.3' | 'parley'
  /** Operations that the SDK does not have. */
  lacks: readonly Operation[]
  /** Reads the card. @param token absent: no credentials */
  connect(base: string, token?: string): Promise<InteropClient>
}

/** A `fetch` that sends the token. */
export function fetchWith(token: string | undefined): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers ?? (input instanceof Request ? input.headers : undefined))
    if (token !== undefined) headers.set('authorization', `Bearer ${token}`)
    return fetch(input, { ...init, headers })
  }
}

export async function collect<T>(stream: AsyncIterable<T>, json: (item: T) => unknown): Promise<unknown[]> {
  const items = []
  for await (const item of stream) items.push(json(item))
  return items
}
