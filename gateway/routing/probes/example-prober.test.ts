import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Announcement, Measurements } from '../../registry/entry.ts'
import { Registry } from '../../registry/registry.ts'
import { SqliteRegistryStore } from '../../registry/store/sqlite/registry.ts'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { ExampleProber, type ExampleProberOptions } from './example-prober.ts'
import type { ExampleOutcome } from './example-sender.ts'

const againAfterMs = 600_000
const log = makeLog({ level: 'silent', name: 'test' })
const skill = (examples: string[]) => ({
  id: 'sums',
  name: 'Sums',
  description: 'Adds numbers',
  tags: [],
  input_modes: ['text/plain'],
  output_modes: ['text/plain'],
  examples,
})

let folder: string
let stack: AsyncDisposableStack

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-probes-'))
  stack = new AsyncDisposableStack()
  stack.defer(() => rm(folder, { recursive: true, force: true }))
})
afterEach(() => stack.disposeAsync())

async function openRegistry(): Promise<Registry> {
  const database = stack.use(await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations))
  return Registry.open(new SqliteRegistryStore(database))
}

function announced(name: string, changes: Partial<Announcement> = {}): Announcement {
  return {
    name,
    description: '',
    url: `http://${name}.test`,
    card: { name },
    skills: [skill(['Add 2 and 3'])],
    owner: name,
    origin: 'registered',
    verified: true,
    admitted: true,
    ...changes,
  }
}

/** A prober whose agents behave as `outcome` says, with a clock that the test advances. */
function prober(registry: Registry, outcome: ExampleProberOptions['send'], more: object = {}) {
  const clock = { ms: Date.now() }
  const sent: string[] = []
  const options: ExampleProberOptions = {
    registry,
    log,
    now: () => clock.ms,
    againAfterMs,
    everyMs: 5,
    send: (entry, text, signal) => {
      sent.push(`${entry.slug}: ${text}`)
      return outcome(entry, text, signal)
    },
    ...more,
  }
  return { prober: stack.use(new ExampleProber(options)), sent, clock }
}

const always = (outcome: ExampleOutcome | undefined) => () => Promise.resolve(outcome)
const probeOf = (registry: Registry, name = 'adder') => registry.find(name)?.exampleProbe
const quiet = () => new Promise((resolve) => setTimeout(resolve, 60))

test('an agent that completes no example is probed at most twice per revision', async () => {
  const registry = await openRegistry()
  const { sent, clock } = prober(registry, always('failed'))
  await registry.register(announced('adder'))
  await expect.poll(() => probeOf(registry)).toMatchObject({ attempts: 1, failed: 1 })
  await quiet()
  expect(sent).toHaveLength(1)
  clock.ms += againAfterMs
  await expect.poll(() => probeOf(registry)).toMatchObject({ attempts: 2, failed: 1 })
  clock.ms += againAfterMs
  await quiet()
  expect(sent).toHaveLength(2)
  // The same card is read again at each registration.
  await registry.register(announced('adder'))
  await quiet()
  expect(sent).toHaveLength(2)
})

test.each(['completed', 'inputRequired', 'authRequired', 'paymentRequired'] as const)(
  'the result %s is final for the revision',
  async (outcome) => {
    const registry = await openRegistry()
    const { sent, clock } = prober(registry, always(outcome))
    await registry.register(announced('adder'))
    await expect.poll(() => probeOf(registry)?.[outcome]).toBe(1)
    clock.ms += 2 * againAfterMs
    await quiet()
    expect(sent).toHaveLength(1)
  },
)

test('a changed card is probed again, but not immediately', async () => {
  const registry = await openRegistry()
  const { sent, clock } = prober(registry, always('completed'))
  await registry.register(announced('adder'))
  await expect.poll(() => probeOf(registry)?.completed).toBe(1)
  const first = probeOf(registry)?.revision
  await registry.register(announced('adder', { skills: [skill(['Add 4 and 5'])] }))
  await quiet()
  expect(sent).toEqual(['adder: Add 2 and 3'])
  clock.ms += againAfterMs
  await expect.poll(() => sent).toEqual(['adder: Add 2 and 3', 'adder: Add 4 and 5'])
  await expect.poll(() => probeOf(registry)).toMatchObject({ attempts: 1, completed: 1 })
  expect(probeOf(registry)?.revision).not.toBe(first)
})

test('an agent with completed tasks of callers is not probed', async () => {
  const registry = await openRegistry()
  const { sent } = prober(registry, always('completed'))
  const { id } = await registry.register(announced('adder', { admitted: false }))
  const measurements: Measurements = { samples: 5, completedTasks: 5, successShare: 1 }
  registry.setMeasurements(id, measurements)
  await registry.admit(id, 'operator')
  await quiet()
  expect(sent).toEqual([])
})

test('a quarantined agent is probed after its release, and no example is sent once it is quarantined', async () => {
  const registry = await openRegistry()
  const skills = ['one', 'two'].map((id) => ({ ...skill([id]), id }))
  const { sent } = prober(registry, async ({ id }) => {
    await registry.quarantine(id, 'operator', 'odd')
    return 'completed'
  })
  await registry.register(announced('adder', { skills }))
  await expect.poll(() => probeOf(registry)?.completed).toBe(1)
  expect(sent).toEqual(['adder: one'])
})

test('one example is in progress at a time', async () => {
  const registry = await openRegistry()
  let [running, most] = [0, 0]
  const { sent } = prober(registry, async () => {
    running += 1
    most = Math.max(most, running)
    await new Promise((resolve) => setTimeout(resolve, 5))
    running -= 1
    return 'completed'
  })
  for (let number = 0; number < 8; number += 1) await registry.register(announced(`adder-${number}`))
  await expect.poll(() => sent).toHaveLength(8)
  expect(most).toBe(1)
})

test('a gateway without the claim probes nothing until it has the claim', async () => {
  const registry = await openRegistry()
  let isOurs = false
  const { sent } = prober(registry, always('completed'), { claim: async () => isOurs })
  await registry.register(announced('adder'))
  await quiet()
  expect(sent).toEqual([])
  isOurs = true
  await expect.poll(() => sent).toHaveLength(1)
})

test('only one of two probers on one registry probes an agent', async () => {
  const registry = await openRegistry()
  const [one, other] = [prober(registry, always('completed')), prober(registry, always('completed'))]
  await registry.register(announced('adder'))
  await expect.poll(() => probeOf(registry)?.completed).toBe(1)
  await quiet()
  expect([...one.sent, ...other.sent]).toHaveLength(1)
})

test('an interrupted probe counts as an attempt', async () => {
  const registry = await openRegistry()
  const { prober: first } = prober(registry, (_entry, _text, signal) => {
    const { promise, reject } = Promise.withResolvers<never>()
    signal.addEventListener('abort', () => reject(new Error('stopped')))
    return promise
  })
  await registry.register(announced('adder'))
  await expect.poll(() => probeOf(registry)?.attempts).toBe(1)
  await first[Symbol.asyncDispose]()
  expect(probeOf(registry)).toMatchObject({ attempts: 1, completed: 0, failed: 0 })
  const { sent, clock } = prober(registry, always('completed'))
  await quiet()
  expect(sent).toEqual([])
  clock.ms += againAfterMs
  await expect.poll(() => probeOf(registry)).toMatchObject({ attempts: 2, completed: 1 })
})

test('an agent that the gateway may not call has no results', async () => {
  const registry = await openRegistry()
  const { sent } = prober(registry, always(undefined))
  const skills = ['one', 'two'].map((id) => ({ ...skill([id]), id }))
  await registry.register(announced('adder', { skills }))
  await expect.poll(() => sent).toEqual(['adder: one'])
  await quiet()
  expect(probeOf(registry)).toMatchObject({ completed: 0, failed: 0, timedOut: 0 })
})
