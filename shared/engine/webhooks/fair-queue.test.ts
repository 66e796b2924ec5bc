import { expect, test } from 'vitest'
import { FairQueue } from './fair-queue.ts'

interface Item {
  host: string
  name: string
  task: { owner: string }
}

const item = (host: string, name = '', owner = 'alice'): Item => ({ host, name, task: { owner } })
const takeAll = (queue: FairQueue<Item>) => {
  const taken: Item[] = []
  for (let one = queue.take(); one !== undefined; one = queue.take()) taken.push(one)
  return taken
}

/** Marks each host as healthy. */
const known = (queue: FairQueue<Item>, hosts: string[], healthy = true) => {
  for (const host of hosts) {
    queue.add(item(host))
    queue.take()
    queue.done(host, 'alice', healthy)
  }
}

test('the hosts of an owner take turns, and the items for each host stay in order', () => {
  const queue = new FairQueue<Item>({ totalMax: 8 })
  known(queue, ['a', 'b'])
  for (const name of ['1', '2', '3']) queue.add(item('a', name))
  for (const name of ['4', '5']) queue.add(item('b', name))
  expect(takeAll(queue).map(({ name }) => name)).toEqual(['1', '4', '2', '5'])
  expect(queue.take()).toBeUndefined()
  queue.done('a', 'alice', true)
  expect(queue.take()?.name).toBe('3')
})

test("owners take turns at a host, so one owner's backlog does not delay another owner", () => {
  const queue = new FairQueue<Item>({ totalMax: 100 })
  known(queue, ['a'])
  for (const name of ['1', '2', '3', '4']) queue.add(item('a', name, 'alice'))
  const left = item('a', 'left', 'bob')
  for (const one of [left, item('a', '5', 'bob'), item('a', '6', 'bob'), item('a', '7', 'carol')])
    queue.add(one)
  queue.remove(left)
  expect(takeAll(queue).map(({ name }) => name)).toEqual(['1', '5', '7', '2', '6', '3', '4'])
})

test('limits active deliveries per host and in total', () => {
  const queue = new FairQueue<Item>({ totalMax: 5, perHostMax: 3 })
  known(queue, ['a', 'b'])
  for (let i = 0; i < 10; i += 1) for (const host of ['a', 'b']) queue.add(item(host, '', `${i}`))
  let inFlight = takeAll(queue)
  const atHost = (name: string) => inFlight.filter(({ host }) => host === name).length
  expect(new Set([atHost('a'), atHost('b')])).toEqual(new Set([2, 3]))
  for (const { host, task } of inFlight.slice(0, 3)) queue.done(host, task.owner, true)
  inFlight = [...inFlight.slice(3), ...takeAll(queue)]
  expect(new Set([atHost('a'), atHost('b')])).toEqual(new Set([2, 3]))
})

test('a failing host gets a quarter of the limit and a new host a sixteenth, until a delivery succeeds', () => {
  const queue = new FairQueue<Item>({ perHostMax: 8 })
  for (let i = 0; i < 30; i += 1) queue.add(item('b'))
  expect(takeAll(queue)).toHaveLength(1)
  known(queue, ['a'])
  for (let i = 0; i < 30; i += 1) queue.add(item('a'))
  expect(takeAll(queue)).toHaveLength(8)
  for (let i = 0; i < 8; i += 1) queue.done('a', 'alice', false)
  expect(takeAll(queue)).toHaveLength(2)
  queue.done('a', 'alice', true)
  expect(takeAll(queue)).toHaveLength(7)
})

test('failing hosts leave half of the slots to other hosts, regardless of how many are failing', () => {
  const queue = new FairQueue<Item>({ totalMax: 10, perHostMax: 4 })
  const sick = Array.from({ length: 20 }, (_, i) => `sick${i}`)
  const well = Array.from({ length: 20 }, (_, i) => `well${i}`)
  known(queue, sick, false)
  known(queue, well)
  for (const host of sick) queue.add(item(host, '', host))
  expect(takeAll(queue)).toHaveLength(5)
  for (const host of well) queue.add(item(host, '', host))
  expect(takeAll(queue).map(({ host }) => host)).toEqual(well.slice(0, 5))
  // If one delivery to a host fails, all of the host's active deliveries count as failing.
  queue.done('well0', 'well0', undefined)
  expect(queue.take()?.host).toBe('well5')
})

test('new hosts leave a quarter of the slots to healthy hosts', () => {
  const queue = new FairQueue<Item>({ totalMax: 8 })
  known(queue, ['healthy'])
  for (let i = 0; i < 20; i += 1) queue.add(item(`new${i}`, '', `owner ${i}`))
  expect(takeAll(queue)).toHaveLength(6)
  queue.add(item('healthy'))
  expect(takeAll(queue).map(({ host }) => host)).toEqual(['healthy'])
})

test('does not return removed items', () => {
  const queue = new FairQueue<Item>()
  const [one, two] = [item('a', '1'), item('a', '2')]
  for (const each of [one, two]) queue.add(each)
  queue.remove(one)
  expect(takeAll(queue)).toEqual([two])
})

test('owners take turns, regardless of how many hosts they have', () => {
  const queue = new FairQueue<Item>()
  for (let i = 0; i < 5; i += 1) queue.add(item(`a${i}`, `a${i}`, 'alice'))
  for (const name of ['b1', 'b2']) queue.add(item(name, name, 'bob'))
  queue.add(item('c', 'c', 'carol'))
  expect(takeAll(queue).map(({ name }) => name)).toEqual(['a0', 'b1', 'c', 'a1', 'b2', 'a2', 'a3', 'a4'])
})

test('an owner takes turns across healthy, failing and new hosts', () => {
  const queue = new FairQueue<Item>()
  known(queue, ['healthy', 'also well'])
  known(queue, ['failing'], false)
  for (const host of ['healthy', 'failing', 'new']) queue.add(item(host, host, 'alice'))
  for (const name of ['b1', 'b2', 'b3']) queue.add(item('also well', name, 'bob'))
  expect(takeAll(queue).map(({ task }) => task.owner)).toEqual([
    'alice',
    'bob',
    'alice',
    'bob',
    'alice',
    'bob',
  ])
})

test('an owner has at most as many active deliveries as there are free slots, so the next owner gets a slot', () => {
  const queue = new FairQueue<Item>({ totalMax: 12 })
  const hosts = Array.from({ length: 60 }, (_, i) => `h${i}`)
  known(queue, hosts)
  const takenBy = (owner: string) => {
    for (const host of hosts) queue.add(item(host, '', owner))
    return takeAll(queue).map(({ task }) => task.owner)
  }
  expect(takenBy('alice')).toEqual(Array.from({ length: 6 }, () => 'alice'))
  expect(takenBy('bob')).toEqual(Array.from({ length: 3 }, () => 'bob'))
  expect(takenBy('carol')).toEqual(Array.from({ length: 2 }, () => 'carol'))
})

test('an owner with many other hosts does not delay other owners at a shared host', () => {
  const queue = new FairQueue<Item>({ perHostMax: 1 })
  for (let i = 0; i < 50; i += 1) queue.add(item(`a${i}`, 'alice elsewhere', 'alice'))
  for (const name of ['alice 1', 'alice 2']) queue.add(item('shared', name, 'alice'))
  queue.add(item('shared', 'bob', 'bob'))
  expect([queue.take(), queue.take()].map((one) => one?.name)).toEqual(['alice elsewhere', 'bob'])
})

test('each of many owners at one host gets a turn', () => {
  const queue = new FairQueue<Item>({ perHostMax: 1 })
  for (let i = 0; i < 200; i += 1) queue.add(item('a', `${i}`, `owner ${i}`))
  const taken: string[] = []
  for (let one = queue.take(); one !== undefined; one = queue.take()) {
    taken.push(one.name)
    queue.done(one.host, one.task.owner, true)
  }
  expect(taken).toEqual(Array.from({ length: 200 }, (_, i) => `${i}`))
})
