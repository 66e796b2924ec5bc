import { beforeEach, describe, expect, test } from 'vitest'
import type { DecisionBounds } from './decision-quotas.ts'
import type {
  DecisionQuery,
  DecisionRecord,
  DecisionSummary,
  Route,
  RoutingStore,
  Verdict,
} from './routing-store.ts'
import { sentenceVectorCases } from './sentence-vectors.cases.ts'
import { example, trainingExampleCases } from './training-examples.cases.ts'

const task = (id: string, more: Partial<Route> = {}): Route => ({
  owner: 'alice',
  kind: 'task',
  id,
  agent: 'sky',
  context: 'c1',
  at: 1000,
  ...more,
})
const context = (id: string, more: Partial<Route> = {}): Route => ({
  owner: 'alice',
  kind: 'context',
  id,
  agent: 'sky',
  at: 1000,
  ...more,
})
const summary: DecisionSummary = {
  method: 'message/send',
  outcome: 'accepted',
  chosen: 'sky',
  candidatesTotal: 1,
  excludedTotal: 0,
  words: 'sky',
}

/** Conformance cases for every routing store adapter. `open` returns an empty store for each test. */
export function routingStoreCases(
  name: string,
  open: (bounds?: DecisionBounds) => Promise<RoutingStore>,
): void {
  let store: RoutingStore
  beforeEach(async () => {
    store = await open()
  })

  describe(`the routing in ${name}`, () => {
    sentenceVectorCases(() => store)

    test('only the owner of a route finds it, in its last version', async () => {
      await store.save([task('t1', { words: { rain: 1 } }), context('c1')])
      await store.save([task('t1', { agent: 'sea', at: 2000 })])
      expect(await store.find('alice', 'task', 't1')).toEqual(task('t1', { agent: 'sea', at: 2000 }))
      expect(await store.find('alice', 'context', 'c1')).toEqual(context('c1'))
      expect(await store.find('mallory', 'task', 't1')).toBeUndefined()
      expect(await store.find('alice', 'key', 't1')).toBeUndefined()
      await store.remove('alice', 'task', 't1')
      expect(await store.find('alice', 'task', 't1')).toBeUndefined()
    })

    test('queued routes are found, and later writes follow them', async () => {
      const first = store.queueRoutes([task('t1', { words: { rain: 1 } }), context('c1'), task('t2')])
      if (store.shared) await first
      const second = store.queueRoutes([task('t2', { agent: 'sea', words: { sun: 1 } }), task('t3')])
      if (store.shared) await second
      expect(await store.find('alice', 'task', 't2')).toEqual(task('t2', { agent: 'sea', words: { sun: 1 } }))
      expect(await store.find('mallory', 'task', 't2')).toBeUndefined()
      const both = [store.takeWords('alice', 't1'), store.takeWords('alice', 't1')]
      expect(await Promise.all(both)).toEqual(expect.arrayContaining([{ rain: 1 }, undefined]))
      expect(await store.find('alice', 'task', 't1')).toEqual(task('t1'))
      expect(await store.waiting('sea', ['t1', 't2'])).toMatchObject([{ id: 't2' }])
      expect(await store.takeWords('alice', 't2')).toEqual({ sun: 1 })
      expect((await store.agentsOf('alice', 5)).toSorted()).toEqual(['sea', 'sky'])
      const more = store.queueRoutes([task('t4'), task('t5', { context: 'c2' }), context('c2')])
      if (store.shared) await more
      await store.save([task('t4', { agent: 'sea' })])
      await store.remove('alice', 'task', 't3')
      await store.removeContext('alice', 'c2')
      await Promise.all([first, second, more])
      const left = await Promise.all(['t3', 't4', 't5'].map((id) => store.find('alice', 'task', id)))
      expect(left.map((route) => route?.agent)).toEqual([undefined, 'sea', undefined])
      expect(await store.find('alice', 'context', 'c2')).toBeUndefined()
    })

    test('a route with a claim never replaces a route to another agent, but such a route replaces it', async () => {
      const claimed = (agent: string, until = 5000): Route =>
        task('t1', { agent, claim: { until, verifiedUntil: 0 } })
      await store.save([claimed('mallory'), claimed('eve')])
      expect(await store.find('alice', 'task', 't1')).toEqual(claimed('mallory'))
      await store.save([claimed('mallory', 6000)])
      expect(await store.find('alice', 'task', 't1')).toEqual(claimed('mallory', 6000))
      await store.verifyClaim(claimed('eve'), 4000)
      await store.verifyClaim(claimed('mallory'), 3000)
      const verified = { ...claimed('mallory'), claim: { until: 6000, verifiedUntil: 3000 } }
      expect(await store.find('alice', 'task', 't1')).toEqual(verified)
      await store.save([task('t1', { words: { rain: 1 } })])
      await store.save([claimed('mallory')])
      await store.verifyClaim(task('t1'), 7000)
      expect(await store.find('alice', 'task', 't1')).toEqual(task('t1', { words: { rain: 1 } }))
    })

    test('claimedTasks returns only tasks with a claim, the latest claim first, filtered and bounded', async () => {
      const claimed = (id: string, until: number, more: Partial<Route> = {}) =>
        task(id, { claim: { until, verifiedUntil: 0 }, ...more })
      const bob = claimed('t2', 2000, { owner: 'bob', agent: 'sea' })
      const all = [claimed('t1', 1000), bob, claimed('t3', 3000)]
      await store.save([...all, context('c1', { claim: { until: 2500, verifiedUntil: 0 } }), task('t4')])
      expect(await store.claimedTasks({ limit: 10 })).toEqual(all.toReversed())
      expect(await store.claimedTasks({ limit: 1, to: 3000 })).toEqual([bob])
      expect(await store.claimedTasks({ limit: 10, owner: 'bob' })).toEqual([bob])
      expect(await store.claimedTasks({ limit: 10, agent: 'sea', from: 2001 })).toEqual([])
      expect(await store.claimedTasks({ limit: 10, id: 't1' })).toEqual(all.slice(0, 1))
    })

    test('removeOld removes expired claims up to the limit', async () => {
      const claimed = (id: string, until: number) => task(id, { claim: { until, verifiedUntil: 0 } })
      await store.save([claimed('t1', 1), claimed('t2', 2), claimed('t3', 3), task('t4')])
      const before = { routes: 0, claims: 3, keys: 0, decisions: 0, trainingExamples: 0, sentenceVectors: 0 }
      expect(await store.removeOld(before, 1)).toBe(1)
      await store.removeOld(before, 1)
      const left = await Promise.all(['t1', 't2', 't3', 't4'].map((id) => store.find('alice', 'task', id)))
      expect(left.map((route) => route !== undefined)).toEqual([false, false, true, true])
    })

    test('exactly one of several concurrent claims for one key wins', async () => {
      const key = (agent: string): Route => ({ owner: 'alice', kind: 'key', id: 'k', agent, at: 1000 })
      const standing = await Promise.all(['a', 'b', 'c', 'd'].map((agent) => store.claim(key(agent))))
      expect(new Set(standing.map(({ agent }) => agent)).size).toBe(1)
      expect(await store.claim(key('e'))).toEqual(standing[0])
      expect((await store.claim({ ...key('e'), owner: 'bob' })).agent).toBe('e')
      await store.remove('alice', 'key', 'k')
      expect((await store.claim(key('f'))).agent).toBe('f')
    })

    test('exactly one of several concurrent exchanges of a claim succeeds, and none succeeds after the route has moved', async () => {
      const at = (agent: string): Route => ({ owner: 'alice', kind: 'context', id: 'c', agent, at: 1000 })
      await store.claim(at('a'))
      const done = await Promise.all(['b', 'c', 'd'].map((agent) => store.exchange(at('a'), at(agent))))
      expect(done.filter(Boolean)).toHaveLength(1)
      const now = await store.find('alice', 'context', 'c')
      expect(now).toEqual(at(['b', 'c', 'd'][done.indexOf(true)] as string))
      expect(await store.exchange(at('a'), undefined)).toBe(false)
      expect(await store.exchange({ ...(now as Route), owner: 'bob' }, undefined)).toBe(false)
      expect(await store.exchange(now as Route, undefined)).toBe(true)
      expect(await store.find('alice', 'context', 'c')).toBeUndefined()
      expect(await store.exchange(now as Route, at('e'))).toBe(false)
    })

    test('removeContext removes the context and its tasks only for this owner', async () => {
      await store.save([task('t1'), context('c1'), task('t2', { context: 'c2' })])
      await store.save([task('t1', { owner: 'bob' }), context('c1', { owner: 'bob' })])
      await store.removeContext('alice', 'c1')
      expect(await store.find('alice', 'task', 't1')).toBeUndefined()
      expect(await store.find('alice', 'context', 'c1')).toBeUndefined()
      expect(await store.find('alice', 'task', 't2')).toBeDefined()
      expect(await store.find('bob', 'task', 't1')).toBeDefined()
      expect(await store.find('bob', 'context', 'c1')).toBeDefined()
    })

    test('agentsOf returns the agents of a caller, most recently used first', async () => {
      await store.save([task('t1', { agent: 'a', at: 1 })])
      await store.save([task('t2', { agent: 'b', at: 2 })])
      await store.save([task('t3', { agent: 'c', at: 3 })])
      await store.save([task('t4', { agent: 'a', at: 4 })])
      expect(await store.agentsOf('alice', 2)).toEqual(['a', 'c'])
      expect(await store.agentsOf('bob', 2)).toEqual([])
    })

    test('saveUse adds an agent whose tasks are not known yet', async () => {
      await store.save([task('t1', { agent: 'a', at: 1 })])
      await store.saveUse('alice', 'b')
      await store.saveUse('alice', 'b')
      expect(await store.agentsOf('alice', 5)).toEqual(['b', 'a'])
      expect(await store.agentsOf('bob', 5)).toEqual([])
    })

    test('words are stored with their task and taken exactly once', async () => {
      await store.save([task('t1', { words: { rain: 1 } }), task('t2')])
      expect((await store.waiting('sky', ['t1', 't2', 't3'])).map(({ id }) => id)).toEqual(['t1'])
      expect(await store.waiting('sea', ['t1'])).toEqual([])
      const taken = await Promise.all(Array.from({ length: 10 }, () => store.takeWords('alice', 't1')))
      expect(taken.filter((words) => words !== undefined)).toEqual([{ rain: 1 }])
      expect(await store.find('alice', 'task', 't1')).toEqual(task('t1'))
      expect(await store.waiting('sky', ['t1'])).toEqual([])
      expect(await store.takeWords('alice', 't2')).toBeUndefined()
      expect(await store.takeWords('alice', 'absent')).toBeUndefined()
    })

    test('a decision is stored in its last version', async () => {
      const record = { id: 'n1', owner: 'alice', at: 5, body: { $gt: '', 'a.b': [1] } }
      await store.saveDecision({ ...record, body: {} })
      await store.saveDecision(record)
      expect(await store.findDecision('n1')).toEqual(record)
      expect(await store.findDecision('n2')).toBeUndefined()
      await store.saveDecision({ id: 'n2', at: 5, body: {} })
      expect(await store.findDecision('n2')).toEqual({ id: 'n2', at: 5, body: {} })
    })

    test('a queued decision is visible to every read before it is written, in a shared store afterwards', async () => {
      const writes: Promise<void>[] = []
      const queue = async (id: string, at: number) => {
        const written = store.queueDecision({ id, at, body: {} })
        writes.push(written)
        if (store.shared) await written
      }
      await Promise.all(['q1', 'q2', 'q3'].map((id) => queue(id, 7)))
      expect(await store.findDecision('q1')).toEqual({ id: 'q1', at: 7, body: {} })
      await queue('q4', 8)
      const listed = await store.listDecisions({ since: 7, until: 9, skip: 0, limit: 10 })
      expect(listed.map(({ id }) => id).toSorted()).toEqual(['q1', 'q2', 'q3', 'q4'])
      await queue('q5', 9)
      expect(await store.addVerdict('q5', { verdict: 'right', by: 'bob', at: 10 })).toBe(true)
      expect(await store.addVerdict('q6', { verdict: 'right', by: 'bob', at: 10 })).toBe(false)
      await Promise.all(writes)
    })

    test('decisions are listed newest first by owner, task and time, with their summary or else their body', async () => {
      const save = (id: string, at: number, more: Partial<DecisionRecord> = {}) =>
        store.saveDecision({ id, at, body: { id }, ...more })
      await save('d1', 1, { owner: 'alice' })
      await save('d2', 2, { owner: 'alice', task: 't2', summary })
      await save('d3', 2, { owner: 'bob', task: 't2', summary })
      await save('d4', 3, { holder: 'alice', summary })
      const list = async (query: Partial<DecisionQuery> = {}) =>
        store.listDecisions({ since: 0, until: 10, skip: 0, limit: 10, ...query })
      const ids = async (query: Partial<DecisionQuery>) => (await list(query)).map(({ id }) => id)
      expect(await list({ owner: 'alice' })).toEqual([
        { id: 'd2', at: 2, owner: 'alice', task: 't2', summary },
        { id: 'd1', at: 1, owner: 'alice', body: { id: 'd1' } },
      ])
      const all = await ids({})
      expect([all[0], all[3], all.toSorted()]).toEqual(['d4', 'd1', ['d1', 'd2', 'd3', 'd4']])
      expect(await ids({ limit: 2 })).toEqual(all.slice(0, 2))
      expect(await ids({ until: 2, skip: 1 })).toEqual(all.slice(2))
      expect((await ids({ task: 't2' })).toSorted()).toEqual(['d2', 'd3'])
      expect(await ids({ task: 't2', owner: 'bob' })).toEqual(['d3'])
      expect(await ids({ since: 2, until: 2, owner: 'alice' })).toEqual(['d2'])
      expect(await ids({ owner: '' })).toEqual([])
    })

    test('concurrent verdicts of several people are all kept, one of each person, at most 50', async () => {
      const verdict = (by: string, more: Partial<Verdict> = {}): Verdict => ({
        verdict: 'wrong',
        by,
        at: 1,
        ...more,
      })
      await store.saveDecision({ id: 'd1', at: 5, body: {}, summary })
      expect(await store.addVerdict('d2', verdict('ann'))).toBe(false)
      const added = await Promise.all(['ann', 'ben', 'cid'].map((by) => store.addVerdict('d1', verdict(by))))
      expect(added).toEqual([true, true, true])
      await store.addVerdict('d1', verdict('ann', { at: 2, verdict: 'right', comment: '{"$gt":""}' }))
      const { verdicts = [] } = (await store.findDecision('d1')) ?? {}
      expect(verdicts.map(({ by }) => by).toSorted()).toEqual(['ann', 'ben', 'cid'])
      expect(verdicts.at(-1)).toEqual(verdict('ann', { at: 2, verdict: 'right', comment: '{"$gt":""}' }))
      for (let number = 0; number < 49; number += 1) await store.addVerdict('d1', verdict(`n${number}`))
      const [listed] = await store.listDecisions({ since: 0, until: 10, skip: 0, limit: 1 })
      expect(listed?.verdicts).toHaveLength(50)
      expect(listed?.summary).toEqual(summary)
    })

    test('a decision keeps the features of its instruction until its context is cleared, and lists leave them out', async () => {
      const features = { words: { rain: 1, 'a.b': 2 }, vector: 'AQID' }
      const record = { id: 'd1', owner: 'alice', at: 5, body: { id: 'd1' }, features, context: 'k1' }
      await store.saveDecision(record)
      const queued = store.queueDecision({ ...record, id: 'd2', context: 'k2', summary })
      if (store.shared) await queued
      await store.addVerdict('d1', { verdict: 'right', by: 'bob', at: 10 })
      expect((await store.findDecision('d1'))?.features).toEqual(features)
      const listed = await store.listDecisions({ since: 0, until: 10, skip: 0, limit: 10 })
      expect(listed.flatMap((decision) => Object.keys(decision))).not.toEqual(
        expect.arrayContaining(['features']),
      )
      expect(listed.flatMap((decision) => Object.keys(decision))).not.toEqual(
        expect.arrayContaining(['context']),
      )
      await store.removeDecisionFeatures('k1')
      const { features: _, ...without } = record
      expect(await store.findDecision('d1')).toMatchObject(without)
      expect((await store.findDecision('d1'))?.features).toBeUndefined()
      expect((await store.findDecision('d2'))?.features).toEqual(features)
      await queued
    })

    test('the features of a task are those of its owner’s decision, until the context is cleared', async () => {
      const features = { words: { rain: 1 }, vector: 'AQID' }
      const save = (id: string, more: Partial<DecisionRecord>) =>
        store.saveDecision({ id, owner: 'alice', at: 5, body: {}, task: 't1', context: 'k1', ...more })
      await save('d1', { features })
      await save('d2', { owner: 'bob', features: { words: { sun: 1 } }, context: 'k2' })
      await save('d3', { task: 't2' })
      const queued = store.queueDecision({ id: 'd4', owner: 'alice', at: 6, body: {}, task: 't3', features })
      if (store.shared) await queued
      expect(await store.featuresOfTask('alice', 't1')).toEqual(features)
      expect(await store.featuresOfTask('bob', 't1')).toEqual({ words: { sun: 1 } })
      expect(await store.featuresOfTask('alice', 't2')).toBeUndefined()
      expect(await store.featuresOfTask('alice', 't3')).toEqual(features)
      expect(await store.featuresOfTask('bob', 't3')).toBeUndefined()
      await store.removeDecisionFeatures('k1')
      expect(await store.featuresOfTask('alice', 't1')).toBeUndefined()
      await queued
    })

    trainingExampleCases(() => store)

    test('the cursor key is 32 bytes and never changes', async () => {
      const key = await store.cursorKey()
      expect(key.byteLength).toBe(32)
      expect(Buffer.from(await store.cursorKey())).toEqual(Buffer.from(key))
    })

    test('removeOld removes expired entries up to the limit for each kind', async () => {
      await store.save([1, 2, 3, 10].map((at) => task(`t${at}`, { at, context: `c${at}` })))
      const others = ['key', 'priced', 'session', 'unrated'] as const
      for (const kind of others) await store.save([1, 10].map((at) => ({ ...context(`k${at}`), kind, at })))
      await store.saveDecision({ id: 'old', at: 1, body: {} })
      await store.saveTrainingExample(example({ at: 1 }))
      const before = {
        routes: 10,
        claims: 0,
        keys: 10,
        decisions: 10,
        trainingExamples: 10,
        sentenceVectors: 10,
      }
      await store.removeOld(before, 2)
      expect(await store.find('alice', 'task', 't3')).toBeDefined()
      await store.removeOld(before, 2)
      expect(await store.find('alice', 'task', 't3')).toBeUndefined()
      expect(await store.find('alice', 'task', 't10')).toBeDefined()
      for (const kind of others) {
        expect(await store.find('alice', kind, 'k1')).toBeUndefined()
        expect(await store.find('alice', kind, 'k10')).toBeDefined()
      }
      expect(await store.findDecision('old')).toBeUndefined()
      expect(await store.findTrainingExample('k1', 'sky')).toBeUndefined()
    })

    test('anonymous decisions displace no caller’s decisions, and beyond the maximum the largest holder loses records', async () => {
      const few = await open({ callers: 6, anonymous: 4 })
      const save = (id: string, at: number, whose: { owner?: string; holder?: string }) =>
        few.saveDecision({ id, at, body: {}, ...whose })
      for (let number = 1; number <= 10; number += 1) {
        await save(`eve ${number}`, 100 + number, { holder: 'eve' })
        await save(`mallory ${number}`, 200 + number, { owner: 'mallory' })
      }
      for (let number = 1; number <= 2; number += 1) {
        await save(`quiet ${number}`, number, { holder: 'quiet' })
        await save(`alice ${number}`, number, { owner: 'alice' })
      }
      const before = { routes: 0, claims: 0, keys: 0, decisions: 0, trainingExamples: 0, sentenceVectors: 0 }
      while ((await few.removeOld(before, 3)) > 0) continue
      const ids = ['eve', 'mallory', 'quiet', 'alice'].map((who) =>
        Array.from({ length: 10 }, (_, at) => `${who} ${at + 1}`),
      )
      const left = await Promise.all(
        ids.map(async (all) => {
          const found = await Promise.all(all.map((id) => few.findDecision(id)))
          return all.filter((_, at) => found[at] !== undefined)
        }),
      )
      expect(left).toEqual([
        ['eve 9', 'eve 10'],
        ['mallory 7', 'mallory 8', 'mallory 9', 'mallory 10'],
        ['quiet 1', 'quiet 2'],
        ['alice 1', 'alice 2'],
      ])
      expect(await few.findDecision('quiet 1')).toEqual({ id: 'quiet 1', at: 1, body: {}, holder: 'quiet' })
    })

    test.each(['$where', 'a.b', '\ud800', 'x'.repeat(5000), 'nul\0', '{"$gt":""}', '__proto__'])(
      'the id %j is treated like any other',
      async (id) => {
        await store.save([task(id, { context: id, owner: id }), context(id, { owner: id })])
        expect((await store.find(id, 'task', id))?.id).toBe(id)
        expect((await store.find(id, 'context', id))?.agent).toBe('sky')
        expect(await store.find('alice', 'task', id)).toBeUndefined()
        expect(await store.agentsOf(id, 10)).toEqual(['sky'])
        await store.removeContext(id, id)
        expect(await store.find(id, 'task', id)).toBeUndefined()
      },
    )
  })
}
