import { expect, test } from 'vitest'
import { AgentFailedError, AgentNotFoundError, InputRequiredError } from '../../author/call-errors.ts'
import { artifact, file } from '../../author/output.ts'
import { testAgent } from '../../testing.ts'

test('a handler calls fake agents by their slug, and the chosen one with best', async () => {
  await using agent = await testAgent(
    {
      handle: async ({ text, agents }) => {
        const sum = await agents.call('calculator', { text, data: { digits: 2 } })
        const best = await agents.best('hello')
        return { text: sum.text, data: sum.data, best: best.text, children: agents.children.length }
      },
    },
    {
      agents: {
        calculator: async ({ text, data }) => (text === '6*7' ? { answer: 42, ...data } : 'unknown'),
        '-': ({ text }) => text.toUpperCase(),
      },
    },
  )
  const { artifacts } = await agent.caller('alice').sendAndWait('6*7')
  expect(artifacts[0]?.parts).toMatchObject([
    { data: { text: '', data: { answer: 42, digits: 2 }, best: 'HELLO', children: 2 } },
  ])
})

test('a fake agent may answer with a message', async () => {
  await using agent = await testAgent(
    {
      handle: async function* ({ agents }) {
        yield (await agents.call('greeter', 'hello')).text
        for await (const event of agents.stream('greeter', 'you'))
          if (event.kind === 'reply') yield event.text
      },
    },
    { agents: { greeter: ({ text, reply }) => reply(`<${text}>`) } },
  )
  const { artifacts } = await agent.caller('alice').sendAndWait('go')
  expect(artifacts[0]?.parts).toMatchObject([{ text: '<hello><you>' }])
})

test('files and artifacts of a fake agent are usable, and files go to it', async () => {
  await using agent = await testAgent(
    {
      handle: async ({ agents, files }) => {
        const { files: made, artifacts } = await agents.call('press', { files })
        return `${made[0]?.name} ${made[0]?.text} ${artifacts.map(({ name }) => name).join()}`
      },
    },
    {
      agents: {
        press: ({ files: [given] }) => artifact('out', 'x', file('b.txt', 'text/plain', `<${given?.text}>`)),
      },
    },
  )
  const sent = { kind: 'file' as const, file: { name: 'a.txt', bytes: Buffer.from('hi').toString('base64') } }
  const { artifacts } = await agent.caller('alice').sendAndWait({ parts: [sent] })
  expect(artifacts[0]?.parts).toMatchObject([{ text: 'b.txt <hi> out' }])
})

test('a fake agent that asks, rejects or fails leads to the same errors as a real one', async () => {
  const errors: unknown[] = []
  await using agent = await testAgent(
    {
      handle: async ({ agents }) => {
        for (const name of ['rejects', 'fails', 'absent'])
          await agents.call(name, 'go').catch((error: unknown) => errors.push(error))
        try {
          await agents.call('asks', 'book a table')
        } catch (error) {
          if (!(error instanceof InputRequiredError)) throw error
          return `${error.question} ${(await error.reply('Friday')).text}`
        }
        return ''
      },
    },
    {
      agents: {
        rejects: ({ decline }) => decline('no'),
        fails: () => {
          throw new Error('broken')
        },
        asks: ({ turn, text, ask }) => (turn === 1 ? ask('Which day?') : `Booked for ${text}`),
      },
    },
  )
  const { artifacts } = await agent.caller('alice').sendAndWait('go')
  expect(artifacts[0]?.parts).toMatchObject([{ text: 'Which day? Booked for Friday' }])
  expect(errors).toEqual([
    expect.objectContaining({ state: 'rejected', reason: 'no' }),
    expect.objectContaining({ state: 'failed', reason: 'broken' }),
    expect.any(AgentNotFoundError),
  ])
  expect(errors[0]).toBeInstanceOf(AgentFailedError)
})

test('a stream of a fake agent yields its text and its artifacts', async () => {
  await using agent = await testAgent(
    {
      handle: async function* ({ agents }) {
        for await (const event of agents.stream('writer', 'go')) {
          if (event.kind === 'delta') yield event.text
        }
      },
    },
    { agents: { writer: () => 'a story' } },
  )
  const { artifacts } = await agent.caller('alice').sendAndWait('go')
  expect(artifacts[0]?.parts).toMatchObject([{ text: 'a story' }])
})

test('without a gateway, a call fails the task with a text that names the settings', async () => {
  await using agent = await testAgent({ handle: async ({ agents }) => (await agents.call('a', 'x')).text })
  const { status } = await agent.caller('alice').sendAndWait('go')
  expect(status).toMatchObject({
    state: 'failed',
    message: { parts: [{ text: expect.stringMatching(/no gateway.*GATEWAY_URL/) }] },
  })
})
