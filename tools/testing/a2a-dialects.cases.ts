import { randomUUID } from 'node:crypto'
import { idsOf } from '@parley/wire/model/ids'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type DialectClient, dialectClients } from './a2a-dialects.ts'
import { WebhookReceiver } from './webhook-receiver.ts'

export interface DialectServer {
  /** The address, without a final slash. */
  url: () => string
  /** Returns the token of a caller, and the ID under which the server stores its tasks. */
  caller: (name: string) => Promise<{ token: string; id: string }>
}

const names = ['Parley', 'A2A 0.3', 'A2A 1.0', 'REST of A2A 1.0']
const pairs = names.flatMap((maker) =>
  names.filter((name) => name !== maker).map((other) => [maker, other] as const),
)

/**
 * Tests of tasks that are made in one dialect and used in another one. The handler of the agent pauses for input at the first
 * message of a task that begins with `ask`, makes a bid for `bid`, and waits to be canceled for `hang`.
 * @param words a text that the server's agent answers, if a gateway has to choose it
 */
export function dialectCases(server: DialectServer, words = ''): void {
  let receiver: WebhookReceiver
  let mine: DialectClient[]
  let theirs: DialectClient[]
  let owner: string
  beforeAll(async () => {
    receiver = await WebhookReceiver.start()
    const [alice, bob] = await Promise.all([server.caller('alice'), server.caller('bob')])
    owner = alice.id
    mine = dialectClients(server.url(), alice.token)
    theirs = dialectClients(server.url(), bob.token)
  })
  afterAll(() => receiver[Symbol.asyncDispose]())

  const of = (clients: DialectClient[], name: string): DialectClient => {
    const client = clients.find((one) => one.name === name)
    if (client === undefined) throw new Error(`no client of ${name}`)
    return client
  }
  const reaches = (client: DialectClient, id: string, state: string) =>
    expect.poll(async () => (await client.get(id)).state).toBe(state)

  describe.each(pairs)('a task of %s in %s', (makerName, otherName) => {
    const clients = () => ({ maker: of(mine, makerName), other: of(mine, otherName) })

    test('keeps the IDs of its client, which only A2A shows', async () => {
      const { maker, other } = clients()
      const given = maker.isA2a ? ['ctx/é#?\u0000', 'msg/#1'] : [randomUUID(), randomUUID()]
      const [contextId = '', messageId = ''] = given
      const { id } = await maker.send(`hello ${words}`, { contextId, messageId })
      await reaches(other, id, 'completed')
      const shown = await other.get(id)
      const [context, message] = other.isA2a ? given : given.map((name) => idsOf(owner)(name).id)
      expect([shown.contextId, shown.messageIds[0]]).toEqual([context, message])
      expect((await maker.get(id)).messageIds[0]).toBe(messageId)
      expect((await other.list({ contextId: shown.contextId })) ?? [id]).toContain(id)
    })

    test('is continued there after a pause, and its history has both messages', async () => {
      const { maker, other } = clients()
      const { id } = await maker.send(`ask ${words}`)
      await reaches(other, id, 'input-required')
      const messageId = randomUUID()
      expect((await other.send('this', { taskId: id, messageId })).id).toBe(id)
      await reaches(maker, id, 'completed')
      expect((await maker.get(id)).messageIds).toContain(messageId)
      await expect(other.send('more', { taskId: id })).rejects.toMatchObject({ code: expect.any(Number) })
    })

    test('is followed and canceled there', async () => {
      const { maker, other } = clients()
      const { id } = await maker.send(`hang ${words}`, { waits: false })
      const streams = [other.subscribe(id), maker.subscribe(id)]
      await reaches(maker, id, 'working')
      expect((await other.cancel(id)).state).toBe('canceled')
      expect((await maker.get(id)).state).toBe('canceled')
      for (const states of await Promise.all(streams)) expect(states.at(-1)).toBe('canceled')
      await expect(maker.cancel(id)).rejects.toMatchObject({ code: expect.any(Number) })
    })

    test('shows the other dialect’s webhook, which receives events in its own dialect', async () => {
      const { maker, other } = clients()
      const { id: taskId } = await maker.send(`ask ${words}`)
      await reaches(maker, taskId, 'input-required')
      const path = `/${randomUUID()}`
      const config = { id: randomUUID(), url: new URL(path, receiver.url).href, token: 'a-token' }
      await other.setPush(taskId, config)
      expect(await maker.listPush(taskId)).toMatchObject([config])
      await maker.send('this', { taskId })
      const posts = () => receiver.posts.filter((post) => post.path === path)
      await expect.poll(() => posts().some(({ body }) => /complete/i.test(body.toString()))).toBe(true)
      const { body = '', headers = {} } = posts().at(-1) ?? {}
      const form =
        { Parley: /"event_id"/, 'A2A 0.3': /"kind":"task"/ }[otherName] ?? /"(statusUpdate|artifactUpdate)"/
      expect(body.toString()).toMatch(form)
      expect(headers[other.isA2a ? 'x-a2a-notification-token' : 'authorization']).toContain('a-token')
      await maker.deletePush(taskId, config.id)
      expect(await other.listPush(taskId)).toEqual([])
    })

    test('is unknown to another client, in every dialect', async () => {
      const { maker } = clients()
      const { id } = await maker.send(`ask ${words}`)
      const other = of(theirs, otherName)
      const missing = { code: expect.toBeOneOf([-32001, 404]) }
      await expect(other.get(id)).rejects.toMatchObject(missing)
      await expect(other.cancel(id)).rejects.toMatchObject(missing)
      await expect(other.listPush(id)).rejects.toMatchObject(missing)
      await expect(other.send(`hello ${words}`, { taskId: id })).rejects.toMatchObject(missing)
      expect((await other.list()) ?? []).not.toContain(id)
    })
  })

  test.each(names.slice(1))(
    '%s: two clients that choose the same IDs have separate contexts',
    async (name) => {
      const [one, two] = [of(mine, name), of(theirs, name)]
      const ids = { contextId: `shared ${name}`, messageId: 'first' }
      const [own, other] = [await one.send(`hello ${words}`, ids), await two.send(`hello ${words}`, ids)]
      expect(own.id).not.toBe(other.id)
      expect([own.contextId, other.contextId]).toEqual([ids.contextId, ids.contextId])
      const { contextId } = ids
      expect((await one.list({ contextId })) ?? [own.id]).toEqual([own.id])
      expect((await two.list({ contextId })) ?? [other.id]).toEqual([other.id])
    },
  )

  test.each(names)(
    'a pause for a bid in a task of %s is shown as input-required, and lists find it',
    async (name) => {
      const { id } = await of(mine, name).send(`bid ${words}`)
      for (const client of mine) {
        await reaches(client, id, client.isA2a ? 'input-required' : 'negotiation-bid-submitted')
        const { metadata } = await client.get(id)
        expect(metadata['parley.negotiation.status']).toBe(client.isA2a ? 'bid-submitted' : undefined)
      }
      const { id: asked } = await of(mine, name).send(`ask ${words}`)
      await reaches(of(mine, 'A2A 1.0'), asked, 'input-required')
      for (const client of [of(mine, 'A2A 1.0'), of(mine, 'REST of A2A 1.0')]) {
        expect((await client.list({ status: 'TASK_STATE_INPUT_REQUIRED' }))?.slice(0, 2)).toEqual([asked, id])
        expect(await client.list({ status: 'TASK_STATE_AUTH_REQUIRED' })).toEqual([])
      }
    },
  )
}
