import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { openGatewayMongodb } from '../../../store/mongodb/database.ts'
import type { DecisionBounds } from '../decision-quotas.ts'
import { routingStoreCases } from '../routing-store.cases.ts'
import { mongodbRoutingStore } from './routing.ts'

const unchanged = { learned: [], forgotten: [], forgottenOf: [] }

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  const opened: AsyncDisposable[] = []
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterEach(async () => {
    while (opened.length > 0) await opened.pop()?.[Symbol.asyncDispose]()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  const open = async (url = server.newUrl(), bounds?: DecisionBounds) => {
    const database = await openGatewayMongodb({ url })
    opened.push(database)
    return mongodbRoutingStore(database, bounds)
  }
  routingStoreCases('MongoDB', (bounds) => open(undefined, bounds))

  test('the route of a task yields the agent of its context when the context has no route', async () => {
    const store = await open()
    await store.save([{ owner: 'alice', kind: 'task', id: 't', agent: 'sky', context: 'c', at: 1 }])
    expect(await store.find('alice', 'context', 'c')).toMatchObject({ agent: 'sky' })
    expect(await store.find('bob', 'context', 'c')).toBeUndefined()
  })

  test('examples that one gateway adds or removes are reported once to the other gateway', async () => {
    const url = server.newUrl()
    const [one, other] = [await open(url), await open(url)]
    const example = { agent: 'sky', context: 'k', caller: 'who', at: Date.now(), outcome: 1, words: { a: 1 } }
    await one.saveTrainingExample(example)
    expect(await other.trainingExamples()).toEqual([example])
    expect(await other.trainingExampleChanges()).toEqual(unchanged)
    await one.saveTrainingExample({ ...example, context: 'l' })
    await one.removeTrainingExamplesOf('k')
    const heard = { learned: [{ ...example, context: 'l' }], forgotten: ['k'], forgottenOf: [] }
    expect(await other.trainingExampleChanges()).toEqual(heard)
    expect(await other.trainingExampleChanges()).toEqual(unchanged)
  })

  test('the agents whose examples one gateway removes are reported once to the other gateway', async () => {
    const url = server.newUrl()
    const [one, other] = [await open(url), await open(url)]
    const example = { agent: 'sky', context: 'k', caller: 'who', at: Date.now(), outcome: 1, words: { a: 1 } }
    await one.saveTrainingExample(example)
    await one.saveTrainingExample({ ...example, context: 'l', caller: 'other' })
    await other.trainingExamples()
    await one.removeTrainingExamplesOfAgent('sky')
    expect(await other.trainingExampleChanges()).toEqual({ ...unchanged, forgottenOf: ['sky'] })
    expect(await other.trainingExampleChanges()).toEqual(unchanged)
    await one.saveTrainingExample(example)
    expect(await other.trainingExampleChanges()).toEqual({ ...unchanged, learned: [example] })
    await one.removeTrainingExamplesOf('k')
    expect(await other.trainingExampleChanges()).toEqual({ ...unchanged, forgotten: ['k'] })
  })

  test('examples that an earlier version stored without their agent are found and removed', async () => {
    const url = server.newUrl()
    const store = await open(url)
    const example = { agent: 'sky', context: 'k', caller: 'who', at: Date.now(), outcome: 1, words: { a: 1 } }
    await store.saveTrainingExample(example)
    const database = await openGatewayMongodb({ url })
    opened.push(database)
    const lessons = database.collection<{ _id: string; agent_id: string }>('lessons')
    await lessons.updateMany({}, { $unset: { agent: '' } })
    expect(await store.trainingExamplesOf('sky')).toEqual([example])
    expect(await store.trainingExamplesOf('sea')).toEqual([])
    expect(await store.removeTrainingExamplesOfAgent('sky')).toBe(1)
  })
})
