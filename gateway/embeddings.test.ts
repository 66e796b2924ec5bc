import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { AddInterface } from './add-routes.ts'
import { agent, call, gatewayForEachTest, post, restart, saying } from './testing.ts'

/** Matching texts get the same vector. */
const near = /automobile|car repair/i
let broken = false
const asked: { body: { model: string; input: string[] }; authorization: string | undefined }[] = []
const server = createServer((request, response) => {
  void text(request).then((body) => {
    const json = JSON.parse(body) as (typeof asked)[number]['body']
    asked.push({ body: json, authorization: request.headers.authorization })
    const vectorOf = (input: string) => (near.test(input) ? [1, 0] : [0, 1])
    const data = json.input.map((input, index) => ({ index, embedding: vectorOf(input) }))
    return response.writeHead(broken ? 500 : 200).end(JSON.stringify({ data }))
  })
})
const env: Record<string, string> = { EMBEDDINGS_MODEL: 'm', EMBEDDINGS_KEY: 'secret' }

beforeAll(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  env['EMBEDDINGS_URL'] = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/embeddings`
})
afterAll(() => void server.close())

let examples: () => Promise<TrainingExample[]>
const addInterface: AddInterface = (_, { routing }) => {
  examples = () => routing.store.trainingExamples()
}
gatewayForEachTest(env, { testInterface: addInterface })

const ask = async (text = 'my automobile squeaks') => {
  const body = JSON.stringify({ task_summary: text, weights: { skill_match: 1 } })
  return (await post('/agent/negotiation', body)).json
}

test('embeddings find an agent that shares no words with the message, and the request has the model and the key', async () => {
  await agent('board', 'Plays chess')
  await agent('garage', 'Car repair')
  await expect.poll(async () => (await ask()).agent.slug).toBe('garage')
  expect((await ask()).can_handle).toBe(true)
  expect(asked[0]).toMatchObject({ body: { model: 'm' }, authorization: 'Bearer secret' })
  const texts = asked.flatMap(({ body }) => body.input)
  expect(texts.filter((one) => one === 'my automobile squeaks')).toHaveLength(1)
})

test('a text without words is not sent to the endpoint and is not close to any skill', async () => {
  await agent('board', 'Plays chess')
  // All texts that are not about cars get the same vector, including a blank one.
  await expect.poll(async () => (await ask('squeaks')).can_handle).toBe(true)
  const before = asked.length
  expect(await ask(' ')).toMatchObject({ can_handle: false, subscores: { skill_match: 0 } })
  expect(asked).toHaveLength(before)
})

/** The texts of the agent that the endpoint received after the first `before` requests. */
const textsOfAgent = (before: number) =>
  asked.slice(before).flatMap(({ body }) => body.input.filter((text) => text.includes('Car repair')))

test('after a restart, the texts of agents are not sent again, unless the model is another one', async () => {
  const garage = await agent('garage', 'Car repair')
  await expect.poll(async () => (await ask()).agent?.slug).toBe('garage')
  let before = asked.length
  await restart(env)
  await garage.register('garage', 'Car repair')
  await expect.poll(async () => (await ask()).agent?.slug).toBe('garage')
  expect(textsOfAgent(before)).toEqual([])
  before = asked.length
  await restart({ ...env, EMBEDDINGS_MODEL: 'n' })
  await expect.poll(() => textsOfAgent(before).length).toBe(1)
})

test('a rating after a restart adds a training example with the words and the vector of the message', async () => {
  const garage = await agent('garage', 'Car repair')
  await expect.poll(async () => (await ask()).agent?.slug).toBe('garage')
  const { json } = await call('message/send', saying('my automobile squeaks'))
  const { id: task_id } = json.result as { id: string }
  await restart(env)
  await garage.register('garage', 'Car repair')
  const rated = await call('tasks/feedback', { task_id, feedback: 'good', rating: 5 })
  expect(rated.status).toBe(200)
  await expect.poll(async () => (await examples()).length).toBe(1)
  const [example] = await examples()
  expect(example?.words).toHaveProperty('automobil')
  expect(Buffer.from(example?.vector ?? '', 'base64')).toHaveLength(384)
})

test('if the endpoint fails, agents are ranked by words only and the reasons report the failure', async () => {
  broken = true
  await agent('garage', 'Automobile repair')
  const body = JSON.stringify({ task_summary: 'automobile repair please', weights: { skill_match: 1 } })
  const { json } = await post('/agent/negotiation', body)
  expect(json.can_handle).toBe(true)
  expect(json.reasons.join()).toContain('embeddings endpoint answered 500')
})
