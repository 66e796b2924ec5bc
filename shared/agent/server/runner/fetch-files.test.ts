import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let files: http.Server
let origin = ''
let asked: string[] = []
/** A path that was removed. */
let gone = ''

beforeAll(async () => {
  files = http.createServer((request, response) => {
    asked.push(request.url ?? '')
    if (request.url === '/large') response.end(Buffer.alloc(3000))
    else if (request.url === '/redirect') response.writeHead(302, { location: '/a' }).end()
    else if (request.url === '/missing' || request.url === gone)
      response.writeHead(404).end('secret of the house')
    else response.writeHead(200, { 'content-type': 'text/csv' }).end(`the file ${request.url}`)
  })
  await new Promise<void>((listening) => files.listen(0, '127.0.0.1', listening))
  origin = `http://127.0.0.1:${(files.address() as AddressInfo).port}`
})
afterAll(() => new Promise((closed) => files.close(closed)))

test('a file part with a uri is fetched before the handler runs, and the part or else the response determines its type', async () => {
  await using agent = await reader({ FILE_ALLOWED_HOSTS: '127.0.0.1' })
  const task = await send(agent, [
    { uri: `${origin}/a` },
    { name: 'b.txt', mime_type: 'text/plain', uri: `${origin}/b` },
    { bytes: 'YyBpcyBoZXJl' },
  ])
  expect(task.artifacts[0]?.parts[0]).toMatchObject({
    data: {
      files: [
        [null, 'text/csv', 'the file /a'],
        ['b.txt', 'text/plain', 'the file /b'],
        [null, null, 'c is here'],
      ],
    },
  })
})

test('without an exception, a private address is not requested and the task is rejected', async () => {
  await using agent = await reader()
  asked = []
  for (const uri of [
    `${origin}/a`,
    'http://localhost/',
    'http://169.254.169.254/latest/',
    'https://a:b@example.org/',
  ]) {
    const task = await send(agent, [{ uri }])
    expect(task.status.state).toBe('rejected')
    expect(reasonOf(task)).toMatch(/^File 1 of the files named by uri could not be fetched: The .+\.$/)
  }
  expect(asked).toEqual([])
})

test.each([
  ['an answer that is not 200', ['/missing'], /^File 1 of .*: The host answered 404\.$/],
  ['a redirect', ['/a', '/redirect'], /^File 2 of .*: The host answered 302\.$/],
  ['more than ARTIFACT_MAX_BYTES', ['/large'], /^File 1 of .*larger than 2000 bytes\.$/],
  [
    'more than that together',
    Array.from({ length: 16 }, () => `/${'a'.repeat(150)}`),
    /^File 13 of .*larger than/,
  ],
])('%s fails the task with the reason, and the handler does not run', async (_title, paths, reason) => {
  await using agent = await reader({ FILE_ALLOWED_HOSTS: '127.0.0.1', ARTIFACT_MAX_BYTES: '2000' })
  const task = await send(
    agent,
    paths.map((path) => ({ uri: origin + path })),
  )
  expect([task.status.state, task.artifacts]).toEqual(['failed', []])
  expect(reasonOf(task)).toMatch(reason)
})

test('a message with more than 16 files by uri is rejected, and no file is fetched', async () => {
  await using agent = await reader({ FILE_ALLOWED_HOSTS: '127.0.0.1' })
  asked = []
  const task = await send(
    agent,
    Array.from({ length: 17 }, () => ({ uri: `${origin}/a` })),
  )
  expect([task.status.state, asked]).toEqual(['rejected', []])
})

describe('after a question from the agent', () => {
  const asksFirst = (env: Record<string, string> = {}) =>
    testAgent(
      {
        handle: ({ history, files, ask }) => {
          if (history.length === 1) return ask('Which column?')
          const parts = history.flatMap((said) => said.parts)
          const seen = parts.flatMap((part) =>
            part.kind === 'file'
              ? [[part.file.mimeType ?? null, Buffer.from(part.file.bytes ?? '', 'base64').toString()]]
              : [],
          )
          return { seen, files: files.length }
        },
      },
      { env: { FILE_ALLOWED_HOSTS: '127.0.0.1', ...env } },
    )
  const answered = async (agent: TestAgent, first: string[], second: string[]) => {
    const parts = (paths: string[]) => [
      { kind: 'text' as const, text: 'x' },
      ...paths.map((path) => ({ kind: 'file' as const, file: { uri: origin + path } })),
    ]
    const caller = agent.caller('alice')
    gone = ''
    const { id } = await caller.sendAndWait({ parts: parts(first) })
    asked = []
    gone = '/gone'
    return caller.sendAndWait({ parts: parts(second), taskId: id })
  }
  const seenOf = (task: { artifacts: { parts: object[] }[] }) => task.artifacts[0]?.parts[0]

  test('the files of the previous message are available in `history`', async () => {
    await using agent = await asksFirst()
    expect(seenOf(await answered(agent, ['/a'], ['/b']))).toMatchObject({
      data: {
        seen: [
          ['text/csv', 'the file /a'],
          ['text/csv', 'the file /b'],
        ],
        files: 1,
      },
    })
    expect(asked).toEqual(['/b', '/a'])
  })

  test('an earlier file that is no longer available is left out, and the task runs', async () => {
    await using agent = await asksFirst()
    const task = await answered(agent, ['/gone', '/a'], [])
    expect(seenOf(task)).toMatchObject({
      data: {
        seen: [
          [null, ''],
          ['text/csv', 'the file /a'],
        ],
      },
    })
  })

  test('at most 16 files and ARTIFACT_MAX_BYTES are fetched in total, and the newest message has priority', async () => {
    await using agent = await asksFirst({ ARTIFACT_MAX_BYTES: '2000' })
    const many = Array.from({ length: 10 }, (_, at) => `/${at}`)
    await answered(agent, many, many)
    expect(asked).toHaveLength(16)
    const long = Array.from({ length: 4 }, () => `/${'a'.repeat(400)}`)
    const task = await answered(agent, long, ['/b'])
    expect(task.status.state).toBe('completed')
    expect(JSON.stringify(seenOf(task)).match(/the file/g)).toHaveLength(5)
    const over = await answered(agent, long, [`/${'b'.repeat(800)}`])
    expect(JSON.stringify(seenOf(over)).match(/the file/g)).toHaveLength(3)
  })
})

test('a malformed FILE_ALLOWED_HOSTS prevents the start with an explanation', async () => {
  await expect(reader({ FILE_ALLOWED_HOSTS: 'localhost:80' })).rejects.toThrow(
    /^FILE_ALLOWED_HOSTS: "localhost:80" is neither/,
  )
})

function reader(env: Record<string, string> = {}): Promise<TestAgent> {
  return testAgent(
    {
      handle: ({ files }) => ({
        files: files.map(({ name, mimeType, text }) => [name ?? null, mimeType ?? null, text]),
      }),
    },
    { env },
  )
}

function send(agent: TestAgent, given: object[]) {
  const parts = given.map((file) => ({ kind: 'file' as const, file }))
  return agent.caller('alice').sendAndWait({ parts })
}

function reasonOf(task: { status: { message?: { parts: unknown[] } } }): string | undefined {
  return (task.status.message?.parts[0] as { text?: string } | undefined)?.text
}
