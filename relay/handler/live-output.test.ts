import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { chunk, relayed, status, taskOf } from './relayed.cases.ts'

test('artifacts keep their names, descriptions and metadata, and are streamed as deltas', async () => {
  const table = { artifactId: 'b', name: 'table', description: 'A table', parts: [{ data: { a: 1 } }] }
  const { caller } = await relayed(
    async (_request, reply) => {
      reply.frame({ task: taskOf('WORKING') })
      await wait(100)
      reply.frame(chunk('Hello '))
      await wait(100)
      reply.frame(chunk('world'))
      reply.frame({ artifactUpdate: { taskId: 't-1', contextId: 'c-1', artifact: table } })
      reply.frame(status('COMPLETED'))
      reply.end()
    },
    { streaming: true },
  )
  const deltas: string[] = []
  const artifacts: object[] = []
  for await (const event of caller.stream('hello')) {
    if (event.kind !== 'artifact-update') continue
    const [part] = event.artifact.parts
    if (event.append || !event.last_chunk) deltas.push(part?.kind === 'text' ? part.text : '')
    else artifacts.push(event.artifact)
  }
  expect(deltas).toEqual(['Hello ', 'world', ''])
  expect(artifacts).toMatchObject([
    { name: 'answer', metadata: { by: 'test' }, parts: [{ text: 'Hello world' }] },
    { name: 'table', description: 'A table', parts: [{ data: { a: 1 } }] },
  ])
})

test('the deltas of interleaved artifacts have the IDs of their artifacts', async () => {
  const piece = (artifactId: string, text: string) => ({
    artifactUpdate: {
      taskId: 't-1',
      contextId: 'c-1',
      artifact: { artifactId, name: artifactId, parts: [{ text }] },
      append: true,
    },
  })
  const { caller } = await relayed(
    async (_request, reply) => {
      reply.frame({ task: taskOf('WORKING') })
      await wait(100)
      for (const frame of [piece('a', 'A1 '), piece('b', 'B1 '), piece('a', 'A2'), piece('b', 'B2')])
        reply.frame(frame)
      await wait(100)
      reply.frame(status('COMPLETED'))
      reply.end()
    },
    { streaming: true },
  )
  const deltas = new Map<string, string>()
  const artifacts = new Map<string, string>()
  for await (const event of caller.stream('hello')) {
    if (event.kind !== 'artifact-update') continue
    const target = event.last_chunk ? artifacts : deltas
    const { artifact_id: id, name, parts } = event.artifact
    const [part] = parts
    target.set(
      `${name} ${id}`,
      (target.get(`${name} ${id}`) ?? '') + (part?.kind === 'text' ? part.text : ''),
    )
  }
  expect([...artifacts.values()]).toEqual(['A1 A2', 'B1 B2'])
  expect([...deltas]).toEqual([...artifacts])
})

test('additions to a polled task are streamed; changes are not', async () => {
  const texts = ['One', 'One two', 'Uno', 'Uno tre']
  let reads = 0
  const { caller } = await relayed(async ({ method }, reply) => {
    if (method === 'SendMessage') return reply.result({ task: taskOf('WORKING') })
    await wait(50)
    const artifacts = [{ artifactId: 'a', parts: [{ text: texts[reads] }] }]
    reads += 1
    return reply.result(taskOf(reads === texts.length ? 'COMPLETED' : 'WORKING', { artifacts }))
  })
  const pieces: unknown[] = []
  for await (const event of caller.stream('hello'))
    if (event.kind === 'artifact-update') pieces.push(event.artifact.parts[0])
  expect(pieces).toMatchObject([{ text: 'One' }, { text: ' two' }, { text: 'Uno tre' }])
})

test('messages of the running agent reach streams as progress', async () => {
  const { caller } = await relayed(
    async (_request, reply) => {
      reply.frame({ task: taskOf('WORKING') })
      await wait(100)
      reply.frame(status('WORKING', 'Reading'))
      await wait(100)
      reply.frame(status('COMPLETED', 'Done'))
      reply.end()
    },
    { streaming: true },
  )
  const messages: unknown[] = []
  for await (const event of caller.stream('hello'))
    if (event.kind === 'status-update') messages.push(event.status.message?.parts[0])
  expect(messages).toMatchObject([undefined, undefined, { text: 'Reading' }, { text: 'Done' }])
})
