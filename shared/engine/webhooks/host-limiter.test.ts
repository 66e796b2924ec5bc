import { expect, test } from 'vitest'
import { HostLimiter, type Release } from './host-limiter.ts'

const { signal } = new AbortController()

/** Acquires slots and records the order in which they are acquired. */
function fixture(options: ConstructorParameters<typeof HostLimiter>[0]) {
  const limiter = new HostLimiter(options)
  const got: string[] = []
  const held = new Map<string, Release[]>()
  /** By default, each host has a different owner. */
  const acquire = async (origin: string, stop = signal, owner = origin) => {
    const release = await limiter.acquire(origin, stop, owner)
    got.push(owner)
    held.set(origin, [...(held.get(origin) ?? []), release])
  }
  const give = (origin: string, answered: boolean | undefined = true) => held.get(origin)?.shift()?.(answered)
  const settled = () => new Promise<void>((done) => setImmediate(done))
  return { limiter, got, acquire, give, settled }
}

/** Makes a host known by recording several responses. */
const makeKnown = async (
  { acquire, give, got }: ReturnType<typeof fixture>,
  origin: string,
  times: number,
) => {
  for (let n = 0; n < times; n++) {
    await acquire(origin)
    give(origin)
  }
  got.length = 0
}

test('one host uses at most its limit, and other hosts can use the rest', async () => {
  const of = fixture({ perHostMax: 2, totalMax: 4 })
  const { got, acquire, give, settled, limiter } = of
  await makeKnown(of, 'a', 1)
  for (const origin of ['a', 'a', 'a', 'b']) void acquire(origin)
  await settled()
  expect([got, limiter.inFlight]).toEqual([['a', 'a', 'b'], 3])
  give('a')
  await settled()
  expect([got, limiter.inFlight]).toEqual([['a', 'a', 'b', 'a'], 3])
})

test("hosts take turns within the total limit, so one host's backlog does not delay another host", async () => {
  const of = fixture({ perHostMax: 1, totalMax: 1 })
  const { got, acquire, give, settled } = of
  for (const origin of ['a', 'b', 'c']) await makeKnown(of, origin, 1)
  for (const origin of ['a', 'a', 'a', 'b', 'b', 'c']) void acquire(origin)
  for (let release = 0; release < 6; release++) {
    await settled()
    give(got.at(-1) ?? '')
  }
  expect(got.slice().sort()).toEqual(['a', 'a', 'a', 'b', 'b', 'c'])
  expect(got.slice(0, 3)).toEqual(['a', 'b', 'c'])
})

test("halves an unresponsive host's limit down to one, and raises it with each response", async () => {
  const of = fixture({ perHostMax: 4, totalMax: 100 })
  const { got, acquire, give, settled } = of
  await makeKnown(of, 'dead', 3)
  for (let n = 0; n < 4; n++) await acquire('dead')
  for (let n = 0; n < 4; n++) give('dead', false)
  const answers = async (answered: boolean) => {
    const before = got.length
    const waiting = Array.from({ length: 4 }, () => acquire('dead'))
    await settled()
    const atOnce = got.length - before
    for (let n = 0; n < 4; n++) {
      give('dead', answered)
      await settled()
    }
    await Promise.all(waiting)
    return atOnce
  }
  expect(await answers(false)).toBe(1)
  expect(await answers(true)).toBe(1)
  expect(await answers(true)).toBe(4)
})

test('unresponsive and new hosts leave slots for responsive hosts, regardless of how many there are', async () => {
  const of = fixture({ perHostMax: 2, totalMax: 8 })
  const { got, acquire, give, settled, limiter } = of
  await makeKnown(of, 'healthy', 1)
  const dead = Array.from({ length: 50 }, (_, i) => `dead${i}`)
  for (const origin of dead) void acquire(origin)
  await settled()
  expect(limiter.inFlight).toBe(6)
  for (const origin of dead) {
    give(origin, false)
    await settled()
  }
  expect(limiter.inFlight).toBe(0)
  for (const origin of dead) void acquire(origin)
  await settled()
  expect(limiter.inFlight).toBe(4)
  got.length = 0
  for (const origin of ['new', 'new', 'new2', 'new2', 'healthy']) void acquire(origin)
  void acquire('healthy', signal, 'another owner')
  await settled()
  expect(got).toEqual(['new', 'new2', 'healthy', 'another owner'])
})

test('a new host gets one slot at a time until it responds', async () => {
  const { got, acquire, give, settled } = fixture({ perHostMax: 4, totalMax: 100 })
  for (let n = 0; n < 4; n++) void acquire('new')
  await settled()
  expect(got).toHaveLength(1)
  give('new')
  await settled()
  expect(got).toHaveLength(3)
})

test('an aborted request leaves the queue, and a slot that is released twice counts once', async () => {
  const { acquire, settled, limiter } = fixture({ perHostMax: 1, totalMax: 1 })
  const release = await limiter.acquire('a', signal)
  const leaving = new AbortController()
  const late = acquire('a', leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(late).rejects.toThrow('gone')
  await expect(acquire('a', AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
  release(true)
  release(true)
  await settled()
  expect(limiter.inFlight).toBe(0)
  await acquire('b')
  expect(limiter.inFlight).toBe(1)
})

test('owners take turns and leave slots for each other, even at one host', async () => {
  const of = fixture({ perHostMax: 8, totalMax: 8 })
  const { got, acquire, give, settled, limiter } = of
  const as = (owner: string, origin: string) => void acquire(origin, signal, owner)
  await makeKnown(of, 'a', 8)
  for (let n = 0; n < 6; n++) as('alice', 'a')
  await settled()
  expect([got, limiter.inFlight]).toEqual([['alice', 'alice', 'alice', 'alice'], 4])
  for (let n = 0; n < 6; n++) as('alice', `other${n}`)
  for (let n = 0; n < 3; n++) as('bob', 'a')
  await settled()
  expect(got.slice(4)).toEqual(['bob', 'bob'])
  give('a')
  await settled()
  expect(got.slice(6)).toEqual(['bob'])
})
