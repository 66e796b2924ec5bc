import path from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { openDatabase } from '../../shared/store/sqlite-database.ts'
import { oauthMigrations, SqliteOAuthStore } from './oauth-sqlite.ts'
import { SignIn } from './sign-in.ts'
import { temporaryFolder } from './testing.ts'

const code = 'ABCDE-FGHJK-MNPQR-STVWX'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

/** Two gateways with one store, and a clock that stands still until it is moved. */
async function make() {
  const folder = await temporaryFolder()
  const database = await openDatabase(path.join(folder.dir, 'gateway.db'), oauthMigrations)
  open.push(folder, database)
  const store = new SqliteOAuthStore(database)
  const clock = { now: 0 }
  const start = () => new SignIn(code, store, () => clock.now)
  return { clock, signIn: start(), other: start() }
}

test.each([code, code.toLowerCase(), code.replaceAll('-', ''), ` ${code.replaceAll('-', ' ')} `])(
  'a person may write the code as %s',
  async (typed) => expect(await (await make()).signIn.check(typed)).toEqual({ accepted: true }),
)

test.each(['', code.slice(1), `${code}A`, 'x'.repeat(10_000)])('a wrong code is refused: %#', async (typed) =>
  expect(await (await make()).signIn.check(typed)).toEqual({ accepted: false, waitSeconds: 0 }),
)

test('after five wrong tries, at whichever gateway, the wait begins and doubles, up to five minutes; nothing is accepted meanwhile', async () => {
  const { clock, signIn, other } = await make()
  const waits: number[] = []
  const meanwhile: boolean[] = []
  for (let tries = 0; tries < 10; tries++) {
    const answer = await (tries % 2 === 0 ? signIn : other).check('wrong')
    const waitMs = answer.accepted ? 0 : answer.waitSeconds * 1000
    waits.push(waitMs / 1000)
    clock.now += waitMs - 1
    if (waitMs > 0) meanwhile.push((await signIn.check(code)).accepted)
    clock.now += 1
  }
  expect(meanwhile).toEqual(Array(6).fill(false))
  expect(waits).toEqual([0, 0, 0, 0, 30, 60, 120, 240, 300, 300])
  expect(await signIn.check(code)).toEqual({ accepted: true })
})

test('a right code forgets the wrong tries', async () => {
  const { signIn } = await make()
  for (let tries = 0; tries < 4; tries++) await signIn.check('wrong')
  expect(await signIn.check(code)).toEqual({ accepted: true })
  expect(await signIn.check('wrong')).toEqual({ accepted: false, waitSeconds: 0 })
})

test('tries that come at once to both count one by one', async () => {
  const { signIn, other } = await make()
  const tries = Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? signIn : other).check('wrong'))
  const answers = await Promise.all(tries)
  const free = answers.filter((answer) => !answer.accepted && answer.waitSeconds === 0)
  expect(free).toHaveLength(4)
  expect(await other.check(code)).toEqual({ accepted: false, waitSeconds: 30 })
})

test('a clock that was ahead closes no longer than the longest wait', async () => {
  const { clock, signIn } = await make()
  clock.now = 86_400_000
  for (let tries = 0; tries < 5; tries++) await signIn.check('wrong')
  clock.now = 0
  expect(await signIn.check(code)).toEqual({ accepted: false, waitSeconds: 300 })
})
