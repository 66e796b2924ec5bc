import { expect, test } from 'vitest'
import { HostLimiter, type Permit } from './host-limiter.ts'

const { signal } = new AbortController()

/** Takes turns and notes who got one, in order. */
function line(options: ConstructorParameters<typeof HostLimiter>[0]) {
  const turns = new HostLimiter(options)
  const got: string[] = []
  const held = new Map<string, Permit[]>()
  /** Each host has an owner of its own, unless one is given. */
  const take = async (origin: string, stop = signal, owner = origin) => {
    const turn = await turns.take(origin, stop, owner)
    got.push(owner)
    held.set(origin, [...(held.get(origin) ?? []), turn])
  }
  const give = (origin: string, answered: boolean | undefined = true) => held.get(origin)?.shift()?.(answered)
  const settled = () => new Promise<void>((done) => setImmediate(done))
  return { turns, got, take, give, settled }
}

/** Makes a host known: it answers so often. */
const known = async ({ take, give, got }: ReturnType<typeof line>, origin: string, times: number) => {
  for (let n = 0; n < times; n++) {
    await take(origin)
    give(origin)
  }
  got.length = 0
}

test('one host has at most its share; what it does not use is there for others', async () => {
  const of = line({ perHostMax: 2, totalMax: 4 })
  const { got, take, give, settled, turns } = of
  await known(of, 'a', 1)
  for (const origin of ['a', 'a', 'a', 'b']) void take(origin)
  await settled()
  expect([got, turns.underWay]).toEqual([['a', 'a', 'b'], 3])
  give('a')
  await settled()
  expect([got, turns.underWay]).toEqual([['a', 'a', 'b', 'a'], 3])
})

test('hosts take turns for what there is in all: a long line of one does not hold up another', async () => {
  const of = line({ perHostMax: 1, totalMax: 1 })
  const { got, take, give, settled } = of
  for (const origin of ['a', 'b', 'c']) await known(of, origin, 1)
  for (const origin of ['a', 'a', 'a', 'b', 'b', 'c']) void take(origin)
  for (let turn = 0; turn < 6; turn++) {
    await settled()
    give(got.at(-1) ?? '')
  }
  expect(got.slice().sort()).toEqual(['a', 'a', 'a', 'b', 'b', 'c'])
  expect(got.slice(0, 3)).toEqual(['a', 'b', 'c'])
})

test('a host that does not answer gets fewer turns at a time, down to one, and gets them back by answering', async () => {
  const of = line({ perHostMax: 4, totalMax: 100 })
  const { got, take, give, settled } = of
  await known(of, 'dead', 3)
  for (let n = 0; n < 4; n++) await take('dead')
  for (let n = 0; n < 4; n++) give('dead', false)
  const answers = async (answered: boolean) => {
    const before = got.length
    const waiting = Array.from({ length: 4 }, () => take('dead'))
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

test('hosts that do not answer, and hosts that nothing is known of, leave turns for those that answer, however many they are', async () => {
  const of = line({ perHostMax: 2, totalMax: 8 })
  const { got, take, give, settled, turns } = of
  await known(of, 'well', 1)
  const dead = Array.from({ length: 50 }, (_, i) => `dead${i}`)
  for (const origin of dead) void take(origin)
  await settled()
  expect(turns.underWay).toBe(6)
  for (const origin of dead) {
    give(origin, false)
    await settled()
  }
  expect(turns.underWay).toBe(0)
  for (const origin of dead) void take(origin)
  await settled()
  expect(turns.underWay).toBe(4)
  got.length = 0
  for (const origin of ['new', 'new', 'new2', 'new2', 'well']) void take(origin)
  void take('well', signal, 'another owner')
  await settled()
  expect(got).toEqual(['new', 'new2', 'well', 'another owner'])
})

test('a host that nothing is known of gets one turn at a time, until it answers', async () => {
  const { got, take, give, settled } = line({ perHostMax: 4, totalMax: 100 })
  for (let n = 0; n < 4; n++) void take('new')
  await settled()
  expect(got).toHaveLength(1)
  give('new')
  await settled()
  expect(got).toHaveLength(3)
})

test('whoever gives up leaves the line, and a turn given back twice counts once', async () => {
  const { take, settled, turns } = line({ perHostMax: 1, totalMax: 1 })
  const turn = await turns.take('a', signal)
  const leaving = new AbortController()
  const late = take('a', leaving.signal)
  leaving.abort(new Error('gone'))
  await expect(late).rejects.toThrow('gone')
  await expect(take('a', AbortSignal.abort(new Error('before')))).rejects.toThrow('before')
  turn(true)
  turn(true)
  await settled()
  expect(turns.underWay).toBe(0)
  await take('b')
  expect(turns.underWay).toBe(1)
})

test('owners take turns, also at one host, and one leaves places to the next', async () => {
  const of = line({ perHostMax: 8, totalMax: 8 })
  const { got, take, give, settled, turns } = of
  const as = (owner: string, origin: string) => void take(origin, signal, owner)
  await known(of, 'a', 8)
  for (let n = 0; n < 6; n++) as('alice', 'a')
  await settled()
  expect([got, turns.underWay]).toEqual([['alice', 'alice', 'alice', 'alice'], 4])
  for (let n = 0; n < 6; n++) as('alice', `other${n}`)
  for (let n = 0; n < 3; n++) as('bob', 'a')
  await settled()
  expect(got.slice(4)).toEqual(['bob', 'bob'])
  give('a')
  await settled()
  expect(got.slice(6)).toEqual(['bob'])
})
