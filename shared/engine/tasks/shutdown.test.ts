import { setTimeout as wait } from 'node:timers/promises'
import { makeLog } from '@parley/kit/process/log'
import { expect, test } from 'vitest'
import { InProcessScheduler } from '../queue/in-process.ts'
import type { Store } from '../store/store.ts'
import type { TaskEngine } from './engine.ts'
import { startExpiry } from './expiry.ts'
import { Leases } from './leases.ts'
import { startSweep } from './sweep.ts'

/** Returns a store whose calls do not return before it is closed. */
function closing() {
  const [asked, closed] = [Promise.withResolvers<void>(), Promise.withResolvers<never>()]
  closed.promise.catch(() => {})
  const ask = () => {
    asked.resolve()
    return closed.promise
  }
  const store = { exclusive: false, ping: ask, renewLeases: ask, listUnfinished: ask, listDue: ask }
  const close = async () => {
    closed.reject(new Error('The store is closed'))
    await wait(20)
  }
  return { store: store as unknown as Store, asked: asked.promise, close }
}

function kept() {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  return { lines, log: makeLog({ level: 'debug', name: 'test', destination }) }
}

type Start = (store: Store, log: ReturnType<typeof makeLog>) => Disposable

test.each<[string, Start]>([
  ['leases', (store, log) => new Leases({ store, log, renewEveryMs: 1 })],
  [
    'the sweep',
    (store, log) => {
      const scheduler = new InProcessScheduler(1)
      scheduler.start(async () => undefined)
      return startSweep({
        store,
        scheduler,
        runner: { holder: 'me', isHeldBack: () => false },
        log,
        intervalMs: 1,
      })
    },
  ],
  ['the expiry of pauses', (store, log) => startExpiry({ store } as TaskEngine, log, 1)],
])('the store closes without a logged error after the shutdown of %s', async (_what, start) => {
  const { store, asked, close } = closing()
  const { lines, log } = kept()
  const started = start(store, log)
  await asked
  started[Symbol.dispose]()
  await close()
  expect(lines).toEqual([])
})
