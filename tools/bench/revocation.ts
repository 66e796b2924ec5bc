/**
 * Duration of a revocation while agents hold leases on the introspection response of the token. All agents respond, so
 * the revocation returns after they have dropped the response.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import { ServerProcess } from './servers/server-process.ts'
import { cores } from './support/machine.ts'
import { median, quick } from './support/measure.ts'
import { expectAtMost } from './support/report.ts'
import { tokenOf } from './support/tokens.ts'

const revocations = quick ? 10 : 50

async function measure(holders: number): Promise<number> {
  await using stack = new AsyncDisposableStack()
  const args = [`${import.meta.dirname}/servers/oauth-process.ts`]
  const { address } = stack.use(await ServerProcess.start({ args, core: cores.server }))
  const client = { url: `${address}/introspect`, clientId: 'agent', clientSecret: 'secret' }
  const introspectors = Array.from({ length: holders }, () =>
    stack.use(new LeasedIntrospector({ http: new HttpIntrospector(client) })),
  )
  const introspectAll = (token: string) => Promise.all(introspectors.map((one) => one.introspect(token)))
  const durations: number[] = []
  for (let number = 0; number < revocations; number += 1) {
    const token = tokenOf(number)
    await introspectAll(token)
    // All holders have a lease then.
    if (number === 0) await wait(1000)
    await introspectAll(token)
    const from = performance.now()
    await fetch(`${address}/revoke`, { method: 'POST', body: token })
    durations.push(performance.now() - from)
    if ((await introspectAll(token)).some(({ active }) => active))
      throw new Error('a revoked token is active')
  }
  return median(durations)
}

for (const holders of [0, 1, 10, 100]) {
  const milliseconds = await measure(holders)
  // Above this, the revocation has waited for the end of a lease.
  expectAtMost(`revocation with ${holders} holders, ms`, milliseconds, 1000)
}
