import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAuthorizationSuite } from './authorization.ts'
import { startBearerProxy } from './bearer-proxy.ts'
import { startTestedServer } from './deployment.ts'
import { unexpectedOf } from './results.ts'
import { type Revision, revisions, runServerSuite } from './suite.ts'

let deployment: Awaited<ReturnType<typeof startTestedServer>>

beforeAll(async () => {
  deployment = await startTestedServer()
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

test.each<Revision>([...revisions])(
  'the MCP server passes the scenarios of revision %s, except those with an explanation',
  async (revision) => {
    await using proxy = await startBearerProxy(deployment.mcp, deployment.token)
    expect(unexpectedOf(revision, await runServerSuite(proxy.url, revision))).toEqual([])
  },
)

test('the OAuth server passes the scenarios for authorization servers', async () => {
  expect(unexpectedOf(undefined, await runAuthorizationSuite(deployment))).toEqual([])
})
