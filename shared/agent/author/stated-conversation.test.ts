import type { JsonObject } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { testAgent } from '../testing.ts'

test('the conversation that a client states is the history of the context', async () => {
  await using agent = await testAgent(
    {
      handle: ({ context }) => ({
        turns: context.history.map(({ state, text, history }) => ({
          state,
          text,
          said: history.map(({ role, parts: [part] }) => [role, part?.kind === 'text' ? part.text : '']),
        })),
      }),
    },
    { store: 'memory' },
  )
  const say = async (metadata: JsonObject) => {
    const { artifacts } = await agent.caller('alice').sendAndWait({ text: 'And now?', metadata })
    return artifacts?.[0]?.parts[0]
  }
  const conversation = [
    { role: 'system', text: 'Be brief' },
    { role: 'user', text: 'One' },
    { role: 'assistant', text: 'Un' },
    { role: 'user', text: 'Two' },
    { role: 'assistant', text: 'Deux' },
  ]
  expect(await say({ conversation })).toMatchObject({
    data: {
      turns: [
        {
          state: 'completed',
          text: 'Un',
          said: [
            ['system', 'Be brief'],
            ['user', 'One'],
            ['assistant', 'Un'],
          ],
        },
        {
          state: 'completed',
          text: 'Deux',
          said: [
            ['user', 'Two'],
            ['assistant', 'Deux'],
          ],
        },
      ],
    },
  })
  expect(await say({ conversation: 'hello' })).toMatchObject({ data: { turns: [] } })
})
