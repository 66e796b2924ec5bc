import { setTimeout as wait } from 'node:timers/promises'
import { wireTo } from '@parley/tools/testing/half-open'
import { hasMongodb, startMongodb } from '@parley/tools/testing/mongodb-server'
import { expect, test } from 'vitest'
import { openMongodbStore } from './store.ts'

const portIn = /:(\d+)\//

test.skipIf(!hasMongodb)(
  'silently lost connections to MongoDB, all or only those of queries: each call ends, and the store recovers (needs mongod)',
  async () => {
    await using server = await startMongodb()
    if (server.kind === 'MONGODB_URL') return
    const url = server.newUrl()
    await using wire = await wireTo(Number(portIn.exec(url)?.[1]))
    await using store = await openMongodbStore({
      url: url.replace(portIn, `:${wire.port}/`),
      agentId: 'a1',
      poolMax: 5,
    })
    const questions = (count: number) => Promise.allSettled(Array.from({ length: count }, () => store.ping()))
    for (const but of [undefined, /hello|ismaster/i]) {
      const connected = await questions(60)
      expect(connected.filter(({ status }) => status === 'rejected')).toEqual([])
      wire.silence(but)
      const began = performance.now()
      // More queries than the pool has connections.
      const answers = await questions(60)
      const failures = answers.flatMap((asked) => (asked.status === 'rejected' ? [asked.reason.error] : []))
      expect(failures.filter((error) => error !== 'Unavailable')).toEqual([])
      while ((await questions(60)).some(({ status }) => status === 'rejected')) await wait(100)
      console.info(`served again after ${Math.round(performance.now() - began)} ms`)
    }
  },
  110_000,
)
