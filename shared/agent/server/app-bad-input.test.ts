import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { price } from '@parley/tools/testing/paid-agent'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestAgent, type TestCaller, testAgent } from '../testing.ts'

const operators: unknown[] = [{ $gt: '' }, { $ne: null }, { $regex: '.*' }, { $in: ['a'] }, [{ $gt: '' }]]

const message = { role: 'user', kind: 'message', parts: [{ kind: 'text', text: 'x' }] }
const config = { id: 'c', url: 'https://example.com/hook' }
const set = 'tasks/pushNotificationConfig/set'
const send = (more: object, configuration?: object) => ({ message: { ...message, ...more }, configuration })

/** Each field of a call that becomes part of a store query, with a function that replaces it with a query operator. */
const fields: [string, string, (is: unknown, id: string) => object][] = [
  ['task_id', 'tasks/get', (is) => ({ task_id: is })],
  ['id', 'tasks/get', (is) => ({ id: is })],
  ['task_id', 'tasks/cancel', (is) => ({ task_id: is })],
  ['task_id', 'tasks/feedback', (is) => ({ task_id: is, feedback: 'x', rating: 5 })],
  ['task_id', 'tasks/events', (is) => ({ task_id: is })],
  ['after_sequence', 'tasks/events', (is, id) => ({ task_id: id, after_sequence: is })],
  ['task_id', 'tasks/resubscribe', (is) => ({ task_id: is })],
  ['cursor', 'tasks/list', (is) => ({ cursor: is })],
  ['context_id', 'tasks/list', (is) => ({ context_id: is })],
  ['state', 'tasks/list', (is) => ({ state: is })],
  ['limit', 'tasks/list', (is) => ({ limit: is })],
  ['cursor', 'contexts/list', (is) => ({ cursor: is })],
  ['context_id', 'contexts/clear', (is) => ({ context_id: is })],
  ['messageId', 'message/send', (is) => send({ messageId: is })],
  ['contextId', 'message/send', (is) => send({ contextId: is })],
  ['taskId', 'message/send', (is) => send({ taskId: is })],
  ['referenceTaskIds', 'message/send', (is) => send({ referenceTaskIds: [is] })],
  ['the id of an inline webhook', 'message/send', (is) => send({}, inline({ id: is }))],
  ['the token of an inline webhook', 'message/send', (is) => send({}, inline({ token: is }))],
  ['taskId', 'message/stream', (is) => send({ taskId: is })],
  ['id', set, (is) => ({ id: is, push_notification_config: config })],
  ['the config’s id', set, (is, id) => ({ id, push_notification_config: { ...config, id: is } })],
  ['task_id', 'tasks/pushNotificationConfig/get', (is) => ({ task_id: is })],
  ['id', 'tasks/pushNotificationConfig/list', (is) => ({ id: is })],
  ['id', 'tasks/pushNotificationConfig/delete', (is) => ({ id: is, push_notification_config_id: 'c' })],
  [
    'push_notification_config_id',
    'tasks/pushNotificationConfig/delete',
    (is, id) => ({ id, push_notification_config_id: is }),
  ],
]
const inline = (given: object) => ({ push_notification_config: { ...config, ...given } })

/** Values of fields that are always strings. The store searches for the literal text and finds no record. */
const texts = ['{"$gt":""}', '$where', 'a.b', '__proto__', '%00', '%ED%A0%80', '%EF%BF%BD', 'x'.repeat(3000)]
const paths = (text: string) => [
  `/api/payment-status/${text}`,
  `/payments?state=${text}`,
  `/payments?state=settled&cursor=${text}`,
]

const stores: [string, boolean][] = [
  ['the embedded store', true],
  ['MongoDB (needs mongod)', false],
]
for (const [name, embedded] of stores) {
  describe.skipIf(!(embedded || hasMongodb))(`bad input over HTTP to an agent on ${name}`, () => {
    let server: MongodbServer | undefined
    let agent: TestAgent
    let alice: TestCaller
    let id = ''
    beforeAll(async () => {
      server = embedded ? undefined : await startMongodb()
      const env = server === undefined ? {} : { STORE_URL: server.newUrl() }
      agent = await testAgent(
        {
          capabilities: { pushNotifications: true, streaming: true },
          handle: ({ text, ask }) => (text === 'ask' ? ask('?') : text),
        },
        { env },
      )
      alice = agent.caller('alice')
      id = (await alice.sendAndWait('mine')).id
    })
    afterAll(async () => {
      await agent?.[Symbol.asyncDispose]()
      await server?.[Symbol.asyncDispose]()
    })

    test.each(fields)(
      'an operator as %s of %s is refused as invalid params',
      async (_field, method, params) => {
        const before = await alice.call('tasks/list', {})
        for (const operator of operators) {
          const answer = alice.call(method, params(operator, id))
          await expect(answer).rejects.toMatchObject({ code: -32602, status: 400 })
        }
        expect(await alice.call('tasks/list', {})).toEqual(before)
      },
    )

    test('an agent stores and returns query operators, dots and keys like __proto__ in metadata and data unchanged', async () => {
      const data = { $set: { owner: 'bob' }, 'a.b': { $gt: '' }, '': 0, constructor: { x: 1 }, $where: '1' }
      const sent = { parts: [{ kind: 'data' as const, data, metadata: data }], metadata: data }
      const task = await alice.sendAndWait(sent)
      const { history } = await alice.get(task.id)
      expect(history?.[0]).toMatchObject({ parts: [{ data, metadata: data }], metadata: data })
      await alice.call('tasks/feedback', {
        task_id: task.id,
        feedback: '{"$gt":""}',
        rating: 1,
        metadata: data,
      })
      await expect(agent.caller('bob').get(task.id)).rejects.toMatchObject({ code: -32001 })
    })

    test.each([
      ['half a surrogate pair', '\ud800'],
      ['another half', '\udfff'],
      ['NUL', '\0'],
      ['the text of an operator', '{"$gt":""}'],
      ['U+FFFD', '\ufffd'],
    ])(
      '%s is kept in every text of a message and, as an id, matches no record of another caller',
      async (_what, odd) => {
        const text = `a${odd}b`
        const made = { parts: [{ kind: 'text' as const, text }], metadata: { [text]: text } }
        const task = await alice.sendAndWait(made)
        expect(task.status.state).toBe('completed')
        const { history, artifacts } = await alice.get(task.id)
        expect(history?.[0]).toMatchObject({ parts: [{ text }], metadata: { [text]: text } })
        expect(artifacts).toMatchObject([{ parts: [{ text }] }])
        await alice.call('tasks/feedback', { task_id: task.id, feedback: text, rating: 5 })
        for (const [method, params] of [
          ['tasks/get', { task_id: text }],
          ['contexts/clear', { context_id: text }],
          ['tasks/list', { cursor: text }],
        ] as const) {
          const status = expect.toSatisfy((code: number) => code >= 400 && code < 500)
          await expect(alice.call(method, params)).rejects.toMatchObject({ status })
        }
      },
    )

    test.each(['{"$gt":""}', '$ne', 'a.b', '__proto__', '#x'])(
      'an agent accepts %s as an Idempotency-Key',
      async (key) => {
        const headers = { 'idempotency-key': key }
        const params = (text: string) => ({
          message: { ...message, messageId: crypto.randomUUID(), parts: [{ kind: 'text', text }] },
        })
        const [one, other] = [params('one'), params('other')]
        const first = (await alice.call('message/send', one, { headers })) as { id: string }
        expect(await alice.call('message/send', one, { headers })).toMatchObject({ id: first.id })
        const bobs = (await agent.caller('bob').call('message/send', one, { headers })) as { id: string }
        expect(bobs.id).not.toBe(first.id)
        const reused = alice.call('message/send', other, { headers })
        await expect(reused).rejects.toMatchObject({
          status: expect.toSatisfy((code: number) => code >= 400 && code < 500),
        })
      },
    )

    test('a token whose client name contains half a surrogate pair is rejected', async () => {
      for (const client of ['alice\ud800', '\udfffalice'])
        await expect(agent.caller(client).call('tasks/list', {})).rejects.toMatchObject({ status: 503 })
    })

    test('a cursor that is forged, truncated, or from another list, caller or agent is rejected', async () => {
      await alice.sendAndWait('another')
      const cursorOf = async (caller: TestCaller, method: string) =>
        (await caller.request(method, { limit: 1 })).headers.get('x-next-cursor') ?? ''
      const cursor = await cursorOf(alice, 'tasks/list')
      expect(cursor).not.toBe('')
      expect(await alice.call('tasks/list', { limit: 1, cursor })).toHaveLength(1)
      const bob = agent.caller('bob')
      await bob.sendAndWait('one')
      const env = server === undefined ? {} : { STORE_URL: server.newUrl() }
      await using other = await testAgent(
        { handle: () => 'x' },
        { env, identityProvider: agent.identityProvider },
      )
      const flipped = `${cursor.slice(0, 20)}${cursor[20] === 'A' ? 'B' : 'A'}${cursor.slice(21)}`
      const bad: [TestCaller, string, string][] = [
        [alice, 'tasks/list', flipped],
        [alice, 'tasks/list', cursor.slice(0, -2)],
        [alice, 'tasks/list', `${cursor}AAAA`],
        [alice, 'tasks/list', '1'],
        [alice, 'contexts/list', cursor],
        [bob, 'tasks/list', cursor],
        [other.caller('alice'), 'tasks/list', cursor],
      ]
      for (const [caller, method, given] of bad) {
        const answer = caller.call(method, { limit: 1, cursor: given })
        await expect(answer).rejects.toMatchObject({ code: -32602, status: 400 })
      }
    })

    test('query operators as payment, session handle, status and ledger cursor match no record of a paid agent', async () => {
      const env = { PAYMENT_SANDBOX: 'yes', ...(server && { STORE_URL: server.newUrl() }) }
      await using paid = await testAgent({ executionCost: price, handle: () => 'x' }, { env })
      const caller = paid.caller('alice', 'agent:read agent:write agent:admin')
      const authorization = `Bearer ${caller.token}`
      for (const text of texts) {
        for (const path of paths(text)) {
          const answer = await fetch(`${paid.url}${path}`, { headers: { authorization } })
          await answer.body?.cancel()
          expect([path, answer.status >= 400 && answer.status < 500]).toEqual([path, true])
        }
        const headers = { 'x-payment-session': text.slice(0, 200) }
        const sent = caller.call('message/send', send({ messageId: crypto.randomUUID() }), { headers })
        await expect(sent).rejects.toMatchObject({
          status: expect.toSatisfy((code: number) => code >= 400 && code < 500),
        })
      }
      for (const operator of operators) {
        const nonce = {
          x402Version: 2,
          payload: { signature: operator, authorization: { nonce: operator, from: operator } },
        }
        const shown = Buffer.from(JSON.stringify(nonce)).toString('base64')
        const headers = { 'x-payment': shown }
        const metadata = { payment_session_id: operator }
        for (const [more, options] of [
          [{}, { headers }],
          [{ metadata }, {}],
        ] as const) {
          const sent = caller.call('message/send', send({ messageId: crypto.randomUUID(), ...more }), options)
          await expect(sent).rejects.toMatchObject({
            status: expect.toSatisfy((code: number) => code >= 400 && code < 500),
          })
        }
      }
    })
  })
}

describe.skipIf(!hasMongodb)(
  'a conversation near the size limit of a MongoDB document (needs mongod)',
  () => {
    test('a message that makes the conversation too long is refused with an explanation, and the task is unchanged', {
      timeout: 240_000,
    }, async () => {
      await using server = await startMongodb()
      const env = { STORE_URL: server.newUrl() }
      await using agent = await testAgent({ handle: ({ ask }) => ask('more?') }, { env })
      const alice = agent.caller('alice')
      const parts = [{ kind: 'text' as const, text: 'x' }]
      const metadata = (megabytes: number) => ({ note: 'y'.repeat(megabytes * 1024 * 1024) })
      const settled = async (given: object) => {
        const { id } = await alice.send({ parts, ...given })
        return alice.wait(id, { signal: AbortSignal.timeout(100_000) })
      }
      const first = await settled({ metadata: metadata(7) })
      expect(first.status.state).toBe('input-required')
      const again = { taskId: first.id, contextId: first.context_id }
      const refused = alice.send({ parts, ...again, metadata: metadata(7) })
      const why = { code: -32602, message: expect.stringContaining('13 MiB') }
      await expect(refused).rejects.toMatchObject(why)
      expect(await alice.get(first.id)).toEqual(first)
      expect((await settled(again)).status.state).toBe('input-required')
    })
  },
)
