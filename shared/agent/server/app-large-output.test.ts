import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { describe, expect, test } from 'vitest'
import { testAgent } from '../testing.ts'

describe.skipIf(!hasMongodb)('output larger than a MongoDB document (needs mongod)', () => {
  test('output that is too large fails its task with a reason, and the next task runs', {
    timeout: 120_000,
  }, async () => {
    await using server = await startMongodb()
    // The output has 18 MB in total, but each part is too small to be stored separately.
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
