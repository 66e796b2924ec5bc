import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { describe, expect, test } from 'vitest'
import { testAgent } from '../testing.ts'

describe.skipIf(!hasMongodb)('more output than a document of MongoDB holds (needs mongod)', () => {
  test('fails its task with a reason, and the next task runs', {
    timeout: 120_000,
  }, async () => {
    await using server = await startMongodb()
    // Each part is below the size at which parts are stored separately: 18 MB in total.
    const made = 'x'.repeat(1000)
    const parts = Array.from({ length: 18_000 }, () => ({ made }))
    await using agent = await testAgent(
      {
        concurrency: 1,
        async *handle({ text }) {
          if (text === 'much') yield* parts
          else yield 'little'
        },
      },
      { env: { STORE_URL: server.newUrl() } },
    )
    const alice = agent.caller('alice')
    const ended = async (text: string) => {
      const { id } = await alice.send(text)
      return alice.wait(id, { signal: AbortSignal.timeout(100_000) })
    }
    const much = await ended('much')
    expect(much.status).toMatchObject({
      state: 'failed',
      message: { parts: [{ text: expect.stringContaining('Too large to be stored') }] },
    })
    expect(much.artifacts ?? []).toEqual([])
    expect((await ended('little')).status.state).toBe('completed')
  })
})
