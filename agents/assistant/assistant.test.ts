import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { HandlerContext } from '@parley/agent'
import { afterEach, expect, test } from 'vitest'
import { assistantOf } from './assistant.ts'
import { maxAnswerCharacters } from './chat-completions.ts'

const key = 'sk-very-secret'
interface Asked {
  path: string
  authorization: string | undefined
  body: {
    model: string
    stream: boolean
    stream_options: object
    messages: { role: string; content: string }[]
  }
}
type Answer = (response: ServerResponse, asked: Asked, request: IncomingMessage) => unknown

let close: (() => void) | undefined
afterEach(() => close?.())

/** A local endpoint that returns the n-th answer to the n-th call, then repeats the last one. */
async function endpoint(...answers: Answer[]) {
  const asked: Asked[] = []
  const take = async (request: IncomingMessage, response: ServerResponse) => {
    const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>)).toString()
    const call = {
      path: request.url ?? '',
      authorization: request.headers.authorization,
      body: JSON.parse(body) as Asked['body'],
    }
    asked.push(call)
    const answer = answers[Math.min(asked.length, answers.length) - 1] as Answer
    await answer(response, call, request)
  }
  const server = createServer((request, response) => void take(request, response))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  close = () => {
    server.closeAllConnections()
    server.close()
  }
  return { asked, baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }
}

const delta = (content: string, finish_reason: string | null = null) => ({
  choices: [{ delta: { content }, finish_reason }],
})
const usage = { choices: [], usage: { prompt_tokens: 12, completion_tokens: 5 } }
const event = (data: object | string) => `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`
const stream =
  (...events: (object | string)[]): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.end(events.map(event).join(''))
  }
const status =
  (code: number, headers: Record<string, string> = {}): Answer =>
  (response) =>
    response.writeHead(code, headers).end(`internal: ${key} at db-7.internal`)
const hello = stream(delta('Hel'), delta('lo', 'stop'), usage, '[DONE]')

interface Said {
  pieces: unknown[]
  usage: unknown[]
  logged: string
}

async function talkTo(
  baseUrl: string,
  given: Partial<HandlerContext> = {},
  settings: { timeoutMs?: number } = {},
): Promise<Said> {
  const said: Said = { pieces: [], usage: [], logged: '' }
  const text = given.text ?? 'Hi'
  const context = {
    text,
    data: {},
    files: [],
    references: [],
    history: [{ role: 'user', parts: [{ kind: 'text', text }] }],
    context: { id: 'context', history: [] },
    signal: new AbortController().signal,
    log: { warn: (...fields: unknown[]) => (said.logged += JSON.stringify(fields)) },
    ask: (prompt: string) => ({ ask: prompt }),
    decline: (reason: string) => ({ declined: reason }),
    usage: (spent: unknown) => said.usage.push(spent),
    ...given,
  } as unknown as HandlerContext
  const agent = assistantOf({
    baseUrl,
    apiKey: key,
    model: 'small',
    systemPrompt: 'Be kind.',
    timeoutMs: 5_000,
    historyCharacters: 5_000,
    ...settings,
  })
  const output = (agent.handle(context) as AsyncGenerator)[Symbol.asyncIterator]()
  for (;;) {
    const { value, done } = await output.next()
    if (value !== undefined) said.pieces.push(value)
    if (done === true) return said
  }
}

/** The failure reason of the task. */
async function failureOf(...answers: Answer[]): Promise<string> {
  const { baseUrl } = await endpoint(...answers)
  const error = await talkTo(baseUrl, {}, { timeoutMs: 1_000 }).then(
    () => new Error('it did not fail'),
    (error: Error) => error,
  )
  expect(error.message).not.toMatch(/127\.0\.0\.1|sk-very|internal|ECONN/)
  return error.message
}

test('streams the answer and counts its tokens', async () => {
  const { baseUrl, asked } = await endpoint(hello)
  expect(await talkTo(baseUrl)).toMatchObject({
    pieces: ['Hel', 'lo'],
    usage: [{ model: 'small', inputTokens: 12, outputTokens: 5 }],
  })
  expect(asked).toEqual([
    {
      path: '/v1/chat/completions',
      authorization: `Bearer ${key}`,
      body: {
        model: 'small',
        messages: [
          { role: 'system', content: 'Be kind.' },
          { role: 'user', content: 'Hi' },
        ],
        stream: true,
        stream_options: { include_usage: true },
      },
    },
  ])
})

test('reassembles events and characters that are split between chunks', async () => {
  const bytes = Buffer.from(`: ping\r\n\r\n${event(delta('Größe 𝒳 – 你好', 'stop'))}${event('[DONE]')}`)
  const { baseUrl } = await endpoint(async (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const byte of bytes) {
      response.write(Buffer.of(byte))
      await new Promise(setImmediate)
    }
    response.end()
  })
  expect((await talkTo(baseUrl)).pieces.join('')).toBe('Größe 𝒳 – 你好')
})

test('reports no usage if the endpoint reports none', async () => {
  const { baseUrl } = await endpoint(stream(delta('Hi', 'stop')))
  expect(await talkTo(baseUrl)).toMatchObject({ pieces: ['Hi'], usage: [] })
})

test('asks for a missing text and declines binary files without calling the endpoint', async () => {
  const { baseUrl, asked } = await endpoint(hello)
  expect((await talkTo(baseUrl, { text: ' ' })).pieces).toEqual([{ ask: 'What can I do for you?' }])
  const files = [{ name: 'a.png', mimeType: 'image/png', bytes: Buffer.from('x'), text: 'x' }]
  expect((await talkTo(baseUrl, { files })).pieces).toEqual([
    { declined: 'I read text files; a.png is none.' },
  ])
  expect(asked).toEqual([])
})

test.each([
  ['401', 'The model endpoint refused our key.', [status(401)]],
  ['403', 'The model endpoint refused our key.', [status(403)]],
  ['404', 'The model endpoint does not know the model or the path.', [status(404)]],
  ['400', 'The model endpoint did not accept the request (HTTP 400).', [status(400)]],
  ['500', 'The model endpoint has a fault (HTTP 500). Try again later.', [status(500)]],
  ['429 without Retry-After', 'The model endpoint is busy. Try again later.', [status(429)]],
  [
    '429 with an hour',
    'The model endpoint is busy. Try again later.',
    [status(429, { 'retry-after': '3600' }), hello],
  ],
  ['429 twice', 'The model endpoint is busy. Try again later.', [status(429, { 'retry-after': '0' })]],
  [
    'a page instead of a stream',
    'The model endpoint does not stream its answer.',
    [(r: ServerResponse) => r.writeHead(200, { 'content-type': 'text/html' }).end('<p>hello')],
  ],
  [
    'a redirect',
    'The model endpoint cannot be reached or broke off its answer.',
    [status(302, { location: 'http://127.0.0.1:1/' })],
  ],
  ['no JSON', 'The answer of the model endpoint is malformed.', [stream('{"choices": [')]],
  ['JSON of another shape', 'The answer of the model endpoint is malformed.', [stream({ choices: 'none' })]],
  [
    'an error event',
    'The model endpoint reported an error in its answer.',
    [stream(delta('Hi'), { error: { message: `${key} internal` } })],
  ],
  ['an end without an end', 'The model endpoint broke off its answer.', [stream(delta('Hal'))]],
  ['no word', 'The model gave an empty answer.', [stream(delta('', 'stop'), '[DONE]')]],
  [
    'an event without end',
    'The answer of the model endpoint is too large.',
    [
      (r: ServerResponse) =>
        r.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: ${'x'.repeat(1_100_000)}`),
    ],
  ],
  [
    'a cut connection',
    'The model endpoint cannot be reached or broke off its answer.',
    [
      (r: ServerResponse) => {
        r.writeHead(200, { 'content-type': 'text/event-stream' })
        r.write(event(delta('Hal')), () => r.destroy())
      },
    ],
  ],
  ['silence', 'The model endpoint did not answer in time.', [() => undefined]],
  [
    'silence in the middle',
    'The model endpoint did not answer in time.',
    [
      (r: ServerResponse) => {
        r.writeHead(200, { 'content-type': 'text/event-stream' })
        r.write(event(delta('Hal')))
      },
    ],
  ],
] as [string, string, Answer[]][])(
  '%s fails the task with a reason that contains no secret',
  async (_, reason, answers) => {
    expect(await failureOf(...answers)).toBe(reason)
  },
)

test('a refused connection fails the task with a reason and logs the code but no address', async () => {
  const { baseUrl } = await endpoint(hello)
  close?.()
  const logged: string[] = []
  const log = {
    warn: (...fields: unknown[]) => logged.push(JSON.stringify(fields)),
  } as unknown as HandlerContext['log']
  await expect(talkTo(baseUrl, { log })).rejects.toThrow(
    'The model endpoint cannot be reached or broke off its answer.',
  )
  expect(logged.join()).toContain('ECONNREFUSED')
  expect(logged.join()).not.toMatch(/127\.0\.0\.1|sk-very/)
})

test('retries a 429 with a short Retry-After once', async () => {
  const { baseUrl, asked } = await endpoint(status(429, { 'retry-after': '0' }), hello)
  expect((await talkTo(baseUrl)).pieces).toEqual(['Hel', 'lo'])
  expect(asked).toHaveLength(2)
})

test('cancelling closes the connection to the endpoint immediately', async () => {
  const stop = new AbortController()
  const gone = Promise.withResolvers<void>()
  const { baseUrl } = await endpoint((response, _, request) => {
    request.socket.on('close', () => gone.resolve())
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(event(delta('Hal')), () => stop.abort(new Error('canceled')))
  })
  await expect(talkTo(baseUrl, { signal: stop.signal })).rejects.toThrow('canceled')
  await gone.promise
})

test('cuts an endless answer, adds a note and closes the connection', async () => {
  const gone = Promise.withResolvers<void>()
  const { baseUrl } = await endpoint(async (response, _, request) => {
    request.socket.on('close', () => gone.resolve())
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const piece = event(delta('x'.repeat(10_000)))
    while (!response.destroyed) {
      response.write(piece)
      await new Promise(setImmediate)
    }
  })
  const answer = (await talkTo(baseUrl)).pieces.join('')
  expect(answer).toMatch(/x\n\n\[Cut after 200000 characters\.\]$/)
  expect(answer.length).toBeLessThan(maxAnswerCharacters + 100)
  await gone.promise
})

test('adds a note if the model cut its answer short', async () => {
  const { baseUrl } = await endpoint(stream(delta('Once upon'), delta(' a', 'length'), '[DONE]'))
  expect((await talkTo(baseUrl)).pieces.join('')).toBe(
    'Once upon a\n\n[Cut: the model reached its longest answer.]',
  )
})
