import { expect, test } from 'vitest'
import { HostTurns, type Turn } from './host-turns.ts'

const { signal } = new AbortController()

/** Takes turns and notes who got one, in order. */
function line(options: ConstructorParameters<typeof HostTurns>[0]) {
  const turns = new HostTurns(options)
  const got: string[] = []
  const held = new Map<string, Turn[]>()
  const take = async (origin: string, stop = signal) => {
    const turn = await turns.take(origin, stop)
    got.push(origin)
    held.set(origin, [...(held.get(origin) ?? []), turn])
  }
  const give = (origin: string, answered: boolean | undefined = true) => held.get(origin)?.shift()?.(answered)
  const settled = () => new Promise<void>((done) => setImmediate(done))
  return { turns, got, take, give, settled }
}

test('one host has at most its share; what it does not use is there for others', async () => {
  const { got, take, give, settled, turns } = line({ perHostMax: 2, totalMax: 4 })
  for (const origin of ['a', 'a', 'a', 'b']) void take(origin)
  await settled()
  expect([got, turns.underWay]).toEqual([['a', 'a', 'b'], 3])
  give('a')
  await settled()
  expect([got, turns.underWay]).toEqual([['a', 'a', 'b', 'a'], 3])
})

test('hosts take turns for what there is in all: a long line of one does not hold up another', async () => {
  const { got, take, give, settled } = line({ perHostMax: 1, totalMax: 1 })
  for (const origin of ['a', 'a', 'a', 'b', 'b', 'c']) void take(origin)
  for (let turn = 0; turn < 6; turn++) {
    await settled()
    give(got.at(-1) ?? '')
  }
  expect(got.slice().sort()).toEqual(['a', 'a', 'a', 'b', 'b', 'c'])
  expect(got.slice(0, 3)).toEqual(['a', 'b', 'c'])
})

test('a host that does not answer gets fewer turns at a time, down to one, and gets them back by answering', async () => {
  const { got, take, give, settled } = line({ perHostMax: 4, totalMax: 100 })
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
