import { expect, test } from 'vitest'
import { SignIn } from './sign-in.ts'

const code = 'ABCDE-FGHJK-MNPQR-STVWX'

/** A sign-in with a clock that stands still until it is moved. */
function make() {
  const clock = { now: 0 }
  return { clock, signIn: new SignIn(code, () => clock.now) }
}

test.each([code, code.toLowerCase(), code.replaceAll('-', ''), ` ${code.replaceAll('-', ' ')} `])(
  'a person may write the code as %s',
  (typed) => expect(make().signIn.check(typed)).toEqual({ accepted: true }),
)

test.each(['', code.slice(1), `${code}A`, 'x'.repeat(10_000)])('a wrong code is refused: %#', (typed) =>
  expect(make().signIn.check(typed)).toEqual({ accepted: false, waitSeconds: 0 }),
)

test('after five wrong tries the wait begins and doubles, up to five minutes; nothing is accepted meanwhile', () => {
  const { clock, signIn } = make()
  const waits: number[] = []
  const meanwhile: boolean[] = []
  for (let tries = 0; tries < 10; tries++) {
    const answer = signIn.check('wrong')
    const waitMs = answer.accepted ? 0 : answer.waitSeconds * 1000
    waits.push(waitMs / 1000)
    clock.now += waitMs - 1
    if (waitMs > 0) meanwhile.push(signIn.check(code).accepted)
    clock.now += 1
  }
  expect(meanwhile).toEqual(Array(6).fill(false))
  expect(waits).toEqual([0, 0, 0, 0, 30, 60, 120, 240, 300, 300])
  expect(signIn.check(code)).toEqual({ accepted: true })
})

test('a right code forgets the wrong tries', () => {
  const { signIn } = make()
  for (let tries = 0; tries < 4; tries++) signIn.check('wrong')
  expect(signIn.check(code)).toEqual({ accepted: true })
  expect(signIn.check('wrong')).toEqual({ accepted: false, waitSeconds: 0 })
})
