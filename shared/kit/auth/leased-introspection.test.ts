import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { IntrospectionResponse } from './introspection.ts'
import { LeasedIntrospector } from './leased-introspection.ts'

const answer = { active: true, client_id: 'alice', exp: Date.now() / 1000 + 600 }
const granted = { instance: 'one', seq: 1, tags: ['t:one'], now: Date.now() }
const refusal = JSON.stringify({ instance: 'one', seq: 1, drop: 'all', lease_ms: 0 })

/** An introspector at an OAuth server that answers when `respond` is called, and the number of requests that it got. */
function introspectorOf() {
  const waiting: ((response: IntrospectionResponse) => void)[] = []
  let requests = 0
  const http = {
    request: () => {
      requests += 1
      return new Promise<IntrospectionResponse>((resolve) => waiting.push(resolve))
    },
    post: async () => ({ status: 200, text: refusal }),
    ping: async () => {},
    [Symbol.asyncDispose]: async () => {},
  }
  const respond = (lease: IntrospectionResponse['lease']) => waiting.shift()?.({ answer, lease, bytes: 100 })
  return { introspector: new LeasedIntrospector({ http }), respond, requests: () => requests }
}

test.each([
  ['that grants no leases share a request in progress', [undefined], 1],
  ['that grants leases have a request of their own, even while the server stops', [granted, undefined], 2],
])('look-ups at an OAuth server %s', async (_what, earlier, expected) => {
  const server = introspectorOf()
  await using introspector = server.introspector
  for (const each of earlier) {
    const first = introspector.introspect('token')
    server.respond(each)
    await first
  }
  const before = server.requests()
  const both = [introspector.introspect('token'), introspector.introspect('token')]
  server.respond(undefined)
  await both[0]
  await setImmediate()
  server.respond(undefined)
  await both[1]
  expect(server.requests() - before).toBe(expected)
})
