import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { afterEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { encryptedStore, temporaryFolder } from '../testing.ts'
import { SignIn } from './sign-in.ts'

const code = 'ABCDE-FGHJK-MNPQR-STVWX'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

/** Creates two gateways that share a store and a manual clock. */
async function make() {
  const folder = await temporaryFolder()
  const database = await openDatabase(path.join(folder.dir, 'gateway.db'), gatewayMigrations)
  open.push(folder, database)
  const store = await encryptedStore(sqliteDocuments(database))
  const clock = { now: 0 }
  const start = () => new SignIn(code, store, () => clock.now)
  return { clock, signIn: start(), other: start() }
}

const owner = { session: 'owner-page', address: '198.51.100.1' }
const attacker = { session: 'attacker-page', address: '203.0.113.7' }

test.each([code, code.toLowerCase(), code.replaceAll('-', ''), ` ${code.replaceAll('-', ' ')} `])(
  'the code can be entered as %s',
  async (typed) =>
    expect(await (await make()).signIn.check({ ...owner, code: typed })).toMatchObject({ accepted: true }),
)

test.each(['', code.slice(1), `${code}A`, 'x'.repeat(10_000)])('a wrong code is refused: %#', async (typed) =>
  expect(await (await make()).signIn.check({ ...owner, code: typed })).toEqual({
    accepted: false,
    waitSeconds: 0,
  }),
)

test('wrong codes from one address at any gateway do not block the right code from another address', async () => {
  const { signIn, other } = await make()
  for (let i = 0; i < 100; i += 1)
    await (i % 2 === 0 ? signIn : other).check({ ...attacker, session: `page-${i}`, code: 'wrong' })
  expect(await signIn.check({ ...attacker, session: 'fresh', code })).toMatchObject({
    accepted: false,
    limit: 'address',
  })
  expect(await other.check({ ...owner, code })).toMatchObject({ accepted: true })
})

test('wrong codes on one page do not block another page at the same address', async () => {
  const { signIn } = await make()
  for (let i = 0; i < 20; i += 1) await signIn.check({ ...attacker, code: 'wrong' })
  expect(await signIn.check({ ...attacker, code })).toMatchObject({ accepted: false, limit: 'session' })
  expect(await signIn.check({ ...attacker, session: 'owner-page', code })).toMatchObject({ accepted: true })
})

test('a page allows five attempts, then one every 30 seconds and none in between', async () => {
  const { clock, signIn, other } = await make()
  const waits: number[] = []
  const early: unknown[] = []
  for (let i = 0; i < 8; i += 1) {
    const answer = await (i % 2 === 0 ? signIn : other).check({ ...owner, code: 'wrong' })
    const waitSeconds = answer.accepted ? Number.NaN : answer.waitSeconds
    waits.push(waitSeconds)
    if (waitSeconds > 0) {
      clock.now += waitSeconds * 1000 - 1
      early.push(await signIn.check({ ...owner, code }))
      clock.now += 1
    }
  }
  const refused = { accepted: false, waitSeconds: 1, limit: 'session' }
  expect(early).toEqual([refused, refused, refused, refused])
  expect(waits).toEqual([0, 0, 0, 0, 30, 30, 30, 30])
  expect(early).toEqual(
    Array.from({ length: 4 }, () => ({ accepted: false, waitSeconds: 1, limit: 'session' })),
  )
  expect(await signIn.check({ ...owner, code })).toMatchObject({ accepted: true })
})

test('a burst of 300 codes and then one per second are checked across all addresses', async () => {
  const { clock, signIn } = await make()
  const guess = (i: number, typed: string) =>
    signIn.check({ code: typed, session: `page-${i}`, address: `203.0.113.${i}` })
  for (let i = 0; i < 300; i += 1) await guess(i, 'wrong')
  expect(await guess(300, code)).toEqual({ accepted: false, waitSeconds: 1, limit: 'everybody' })
  clock.now += 1000
  expect(await guess(301, 'wrong')).toMatchObject({ accepted: false })
  expect(await guess(302, code)).toMatchObject({ accepted: false, limit: 'everybody' })
})

test('a browser that has signed in before has a separate limit and is not blocked by attempts from others', async () => {
  const { signIn, other } = await make()
  const first = await signIn.check({ ...owner, code })
  const device = first.accepted ? first.device : undefined
  for (let i = 0; i < 320; i += 1)
    await signIn.check({
      code: 'wrong',
      session: `page-${i}`,
      address: i % 2 === 0 ? owner.address : `203.0.113.${i}`,
    })
  const page = (session: string) => ({ ...owner, session })
  expect(await signIn.check({ ...page('no cookie'), code })).toMatchObject({ accepted: false })
  expect(await signIn.check({ ...page('forged'), device: 'x'.repeat(43), code })).toMatchObject({
    accepted: false,
  })
  expect(await other.check({ ...page('its cookie'), device, code })).toEqual({ accepted: true })
  for (let i = 0; i < 40; i += 1) await signIn.check({ ...page(`own-${i}`), device, code: 'wrong' })
  expect(await signIn.check({ ...page('late'), device, code })).toMatchObject({
    accepted: false,
    limit: 'device',
  })
})

test('a sign-in more than 90 days ago does not count', async () => {
  const { clock, signIn } = await make()
  const first = await signIn.check({ ...owner, code })
  const device = first.accepted ? first.device : undefined
  clock.now += 91 * 86_400_000
  expect(await signIn.check({ ...owner, session: 'later', device, code })).toEqual({
    accepted: true,
    device: expect.stringMatching(/^[\w-]{43}$/),
  })
})

test('concurrent attempts at both gateways are counted individually', async () => {
  const { signIn, other } = await make()
  const attempts = Array.from({ length: 20 }, (_, n) =>
    (n % 2 === 0 ? signIn : other).check({ ...owner, code: n < 19 ? 'wrong' : code }),
  )
  const answers = await Promise.all(attempts)
  expect(answers.filter((answer) => !answer.accepted && answer.waitSeconds === 0).length).toBeLessThanOrEqual(
    4,
  )
  expect(await other.check({ ...owner, code })).toEqual({
    accepted: false,
    waitSeconds: 30,
    limit: 'session',
  })
})

test('after a clock adjustment, no limit blocks for longer than an exhausted one', async () => {
  const { clock, signIn } = await make()
  clock.now = 86_400_000
  for (let i = 0; i < 5; i += 1) await signIn.check({ ...owner, code: 'wrong' })
  clock.now = 0
  expect(await signIn.check({ ...owner, code })).toEqual({
    accepted: false,
    waitSeconds: 30,
    limit: 'session',
  })
})
