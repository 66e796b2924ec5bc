import { afterAll, beforeAll, expect, test } from 'vitest'
import { runAuthorizationSuite } from './authorization.ts'
import { unexpectedOf } from './results.ts'
import { type Revision, revisions } from './suite.ts'
import { runRevision, startTestedServer } from './tested-server.ts'

let deployment: Awaited<ReturnType<typeof startTestedServer>>

beforeAll(async () => {
  deployment = await startTestedServer()
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

test.each<Revision>([...revisions])(
  'the MCP server passes the scenarios of revision %s, except those with an explanation',
  async (revision) => {
    expect(unexpectedOf(revision, await runRevision(deployment, revision))).toEqual([])
  },
)

test('the OAuth server passes the scenarios for authorization servers', async () => {
  expect(unexpectedOf(undefined, await runAuthorizationSuite(deployment))).toEqual([])
})
