import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import type { Encoded } from '@parley/negotiation/index/request-meaning'
import type { AgentVectors } from '@parley/negotiation/index/skill-vectors'
import { inBytes, packed } from '@parley/negotiation/index/vector-store'
import type { Offer } from '@parley/negotiation/score/offer'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { SqliteRoutingStore } from '../store/sqlite/routing.ts'
import { Meaning, type MeaningOptions } from './meaning.ts'

const day = 24 * 60 * 60 * 1000

let folder: string
let database: SqliteDatabase
let store: SqliteRoutingStore
let warnings: unknown[]
/** The texts that were embedded since the last start. */
let embedded: string[]
let vectors: Map<string, AgentVectors | undefined>
let meaning: Meaning

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-meaning-'))
  warnings = []
  await open()
  start()
})

afterEach(async () => {
  vi.useRealTimers()
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

async function open(): Promise<void> {
  database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  store = new SqliteRoutingStore(database)
}

/** Starts the meaning with an empty index and an encoder without memory. */
function start({ model = 'm', kept = store }: { model?: string; kept?: MeaningOptions['store'] } = {}): void {
  embedded = []
  vectors = new Map()
  meaning = new Meaning({
    index: { setVectors: (id, set) => void vectors.set(id, set) },
    encoder: {
      embed: async (texts): Promise<Encoded> => {
        embedded.push(...texts)
        return { vectors: texts.map((text) => vectorOf(model, text)) }
      },
      model: async () => (model === 'unknown' ? undefined : model),
      background: async () => [],
    },
    store: kept,
    log: { warn: (...line: unknown[]) => void warnings.push(line) },
  })
}

async function restart(more?: Parameters<typeof start>[0]): Promise<void> {
  await database[Symbol.asyncDispose]()
  await open()
  start(more)
}

function vectorOf(model: string, text: string): Float32Array {
  const bytes = Array.from({ length: 12 }, (_, at) => [
    ...createHash('sha256').update(`${model} ${at} ${text}`).digest(),
  ])
  const vector = Float32Array.from(bytes.flat(), (value) => value - 127.5)
  const length = Math.hypot(...vector)
  return vector.map((value) => value / length)
}

const offerOf = (name: string, ...descriptions: string[]): Offer => ({
  name,
  description: `All about ${name}`,
  queueDepth: 0,
  skills: descriptions.map((description, at) => ({
    id: `s${at}`,
    name: `skill ${at}`,
    description,
    tags: [],
    examples: [`an example of ${description}`],
    inputModes: ['text/plain'],
    outputModes: ['text/plain'],
    allowedTools: [],
    performance: {},
    assessment: { keywords: [], specializations: [], antiPatterns: [] },
  })),
})

const sky = offerOf('sky', 'Forecasts the weather', 'Warns of storms')
const sea = offerOf('sea', 'Lists the tides')

async function noteAll(...offers: Offer[]): Promise<void> {
  for (const offer of offers) meaning.note(String(offer.name), offer)
  await meaning.ready()
}

/** What the index compares. */
const compared = (agent: string) => {
  const { agent: about, skills } = vectors.get(agent) ?? { skills: [] }
  const all = [about, ...skills.flatMap(({ text, examples }) => [text, ...examples])]
  return all.flatMap((vector) => (vector === undefined ? [] : [inBytes(vector)]))
}

test('after a restart, nothing that is unchanged is embedded, and the vectors are compared as before', async () => {
  await noteAll(sky, sea)
  expect(embedded).toHaveLength(8)
  const before = [compared('sky'), compared('sea')]
  await restart()
  await noteAll(sea, sky)
  expect(embedded).toEqual([])
  expect([compared('sky'), compared('sea')]).toEqual(before)
  expect(before[0]).toHaveLength(5)
})

test('vectors of many agents are read in small steps, between which requests are answered', async () => {
  const many = Array.from({ length: 200 }, (_, at) => offerOf(`agent ${at}`, `Skill ${at}`))
  await noteAll(...many)
  await restart()
  const seen: number[] = []
  const look = () => {
    seen.push(vectors.size)
    if (vectors.size < many.length) setImmediate(look)
  }
  setImmediate(look)
  await noteAll(...many)
  expect(embedded).toEqual([])
  const steps = [...seen, vectors.size].map((size, at) => size - (seen[at - 1] ?? 0))
  expect(Math.max(...steps)).toBeLessThanOrEqual(40)
})

test('of a changed agent, only the new texts are embedded', async () => {
  await noteAll(sky)
  await restart()
  await noteAll(offerOf('sky', 'Forecasts the weather', 'Warns of floods'))
  expect(embedded).toEqual(['sky, skill 1: Warns of floods', 'an example of Warns of floods'])
  const expected = ['sky, skill 1: Warns of floods', 'sky, skill 0: Forecasts the weather']
  const texts = vectors.get('sky')?.skills.map(({ text }) => text)
  expect(texts?.map((text) => packed(text))).toEqual(
    expected.toReversed().map((text) => packed(vectorOf('m', text))),
  )
})

test('the vectors of one model are never those of another', async () => {
  await noteAll(sky)
  const before = compared('sky')
  await restart({ model: 'n' })
  await noteAll(sky)
  expect(embedded).toHaveLength(5)
  expect(compared('sky')).not.toEqual(before)
  await restart()
  await noteAll(sky)
  expect([embedded, compared('sky')]).toEqual([[], before])
})

test('if the model is unknown, no vectors are kept', async () => {
  start({ model: 'unknown' })
  await noteAll(sky)
  await restart({ model: 'unknown' })
  await noteAll(sky)
  expect([embedded.length, compared('sky').length, warnings]).toEqual([5, 5, []])
})

test('a damaged vector is embedded again and replaced, without the others', async () => {
  await noteAll(sky)
  const before = compared('sky')
  await database.write(() => {
    const damage = database.statement(
      "UPDATE sentence_vectors SET vector = x'00' WHERE key IN (SELECT key FROM sentence_vectors LIMIT 2)",
    )
    expect(Number(damage.run().changes)).toBe(2)
  })
  await restart()
  await noteAll(sky)
  expect([embedded.length, compared('sky')]).toEqual([2, before])
  await restart()
  await noteAll(sky)
  expect([embedded.length, compared('sky')]).toEqual([0, before])
})

test('the store contains no texts, and 388 bytes for each', async () => {
  await noteAll(sky)
  const rows = await database.read(() => database.statement('SELECT key, vector FROM sentence_vectors').all())
  expect(rows.map(({ key }) => /^[\w-]{43}$/.test(String(key)))).toEqual(Array(5).fill(true))
  expect(rows.map(({ vector }) => (vector as Uint8Array).length)).toEqual(Array(5).fill(388))
})

test('a store that fails is logged once, is not used for a while, and all agents get their vectors', async () => {
  let calls = 0
  const fails = async () => {
    calls += 1
    throw new Error('the disk is broken')
  }
  start({ kept: { sentenceVectors: fails, saveSentenceVectors: fails, markSentenceVectors: fails } })
  await noteAll(sky, sea)
  await meaning.markUsed()
  expect([compared('sky').length, compared('sea').length]).toEqual([5, 3])
  expect([calls, warnings.length]).toEqual([1, 1])
  vi.useFakeTimers({ now: Date.now() + 61_000, toFake: ['Date'] })
  await noteAll(sky)
  expect([calls, warnings.length]).toEqual([2, 1])
})

test('a store that only fails to write does not keep agents from their vectors', async () => {
  const kept: MeaningOptions['store'] = {
    sentenceVectors: (keys) => store.sentenceVectors(keys),
    saveSentenceVectors: () => Promise.reject(new Error('the disk is full')),
    markSentenceVectors: (keys, used) => store.markSentenceVectors(keys, used),
  }
  start({ kept })
  await noteAll(sky, sea)
  expect([compared('sky').length, compared('sea').length, warnings.length]).toEqual([5, 3, 1])
})

const removeUnused = () =>
  store.removeOld(
    {
      routes: 0,
      claims: 0,
      keys: 0,
      decisions: 0,
      trainingExamples: 0,
      sentenceVectors: Date.now() - 30 * day,
    },
    1000,
  )

/** Makes all stored vectors look as if they were last used then. */
const usedAt = (at: number) =>
  database.write(() => database.statement('UPDATE sentence_vectors SET at = ?').run(at))

test('vectors that no agent has any more are removed, and those of a running gateway are kept', async () => {
  await noteAll(sky, sea)
  meaning.remove('sea')
  await usedAt(Date.now() - 31 * day)
  await meaning.markUsed()
  expect(await removeUnused()).toBe(3)
  await restart()
  await noteAll(sky)
  expect(embedded).toEqual([])
})

test('used vectors are marked at most once a week, by a gateway that looks once a day', async () => {
  await noteAll(sky)
  const times = async () => {
    const rows = await database.read(() =>
      database.statement('SELECT DISTINCT at FROM sentence_vectors').all(),
    )
    return rows.map(({ at }) => Number(at))
  }
  const recently = Date.now() - 6 * day
  await usedAt(recently)
  await meaning.markUsed()
  expect(await times()).toEqual([recently])
  await usedAt(1)
  await meaning.markUsed()
  expect(await times()).toEqual([1])
})

test('an agent that is changed or removed while it is embedded does not get the vectors of its earlier texts', async () => {
  const changed = offerOf('sky', 'Names the stars', 'Names the planets')
  meaning.note('sky', sky)
  meaning.note('sea', sea)
  while (embedded.length === 0) await Promise.resolve()
  meaning.note('sky', changed)
  meaning.remove('sea')
  await meaning.ready()
  const texts = vectors.get('sky')?.skills.map(({ text }) => text)
  const expected = ['sky, skill 0: Names the stars', 'sky, skill 1: Names the planets']
  expect(texts?.map((text) => packed(text))).toEqual(expected.map((text) => packed(vectorOf('m', text))))
  expect([...vectors.keys()]).toEqual(['sky'])
})

test('after the meaning was disposed of, no further agent is embedded', async () => {
  meaning.note('sky', sky)
  meaning.note('sea', sea)
  meaning[Symbol.dispose]()
  await meaning.ready()
  expect([embedded, vectors.size]).toEqual([[], 0])
})
