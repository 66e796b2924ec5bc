import http from 'node:http'

/** A request. A `body` that is neither a string nor bytes is sent as JSON. */
export interface Sent {
  method?: string
  url: string
  headers?: Record<string, string>
  body?: unknown
}

/** A response; `headers` contains alternating names and values, with their original spelling. */
export interface Answer {
  status: number
  statusText: string
  headers: string[]
  body: Buffer
}

const timeoutMs = 60_000

export function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return body
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
}

/** Sends one request on a new connection and reads the whole response. */
export function send({ method = 'GET', url, headers = {}, body }: Sent): Promise<Answer> {
  const bytes = bytesOf(body)
  const length = bytes === undefined ? {} : { 'content-length': String(bytes.byteLength) }
  const { hostname, port } = new URL(url)
  // The unparsed path, because a URL parser would resolve dot segments.
  const path = /^https?:\/\/[^/?#]*(.*)$/s.exec(url)?.[1] || '/'
  return new Promise((resolve, reject) => {
    const request = http.request(
      {
        method,
        hostname,
        port,
        path,
        headers: { ...length, connection: 'keep-alive', ...headers },
        agent: false,
        timeout: timeoutMs,
      },
      (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            statusText: response.statusMessage ?? '',
            headers: response.rawHeaders,
            body: Buffer.concat(chunks),
          }),
        )
      },
    )
    request.on('timeout', () =>
      request.destroy(new Error(`no answer within ${timeoutMs} ms: ${method} ${url}`)),
    )
    request.on('error', reject)
    request.end(bytes)
  })
}

export function header(answer: Answer, name: string): string | undefined {
  const at = answer.headers.findIndex((text, i) => i % 2 === 0 && text.toLowerCase() === name)
  return at === -1 ? undefined : answer.headers[at + 1]
}

/** The value at a path of keys in the JSON body; undefined if it is absent. */
export function valueAt({ body }: Answer, ...keys: (string | number)[]): unknown {
  let value: unknown
  try {
    value = JSON.parse(body.toString('utf8'))
  } catch {
    return undefined
  }
  for (const key of keys) {
    if (typeof value !== 'object' || value === null) return undefined
    value = new Map(Object.entries(value)).get(String(key))
  }
  return value
}

/** @throws Error when the JSON body has no string at this path */
export function textAt(answer: Answer, ...keys: (string | number)[]): string {
  const value = valueAt(answer, ...keys)
  if (typeof value === 'string') return value
  throw new Error(
    `no text at ${keys.join('.')} of ${answer.status} ${answer.body.toString('utf8').slice(0, 500)}`,
  )
}
