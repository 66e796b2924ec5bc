import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { agent, gatewayForEachTest, post } from './testing.ts'

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

gatewayForEachTest(env)

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

test('if the endpoint fails, agents are ranked by words only and the reasons report the failure', async () => {
  broken = true
  await agent('garage', 'Automobile repair')
  const body = JSON.stringify({ task_summary: 'automobile repair please', weights: { skill_match: 1 } })
  const { json } = await post('/agent/negotiation', body)
  expect(json.can_handle).toBe(true)
  expect(json.reasons.join()).toContain('embeddings endpoint answered 500')
})
