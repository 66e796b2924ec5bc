import { afterAll, beforeAll, expect, test } from 'vitest'
import { type InteropDeployment, startDeployment } from '../interop/deployment.ts'
import { runAuthorizationSuite } from './authorization.ts'
import { startBearerProxy } from './bearer-proxy.ts'
import { unexpectedOf } from './results.ts'
import { type Revision, revisions, runServerSuite } from './suite.ts'

let deployment: InteropDeployment

beforeAll(async () => {
  deployment = await startDeployment(['../tools/testing/mcp-agent'])
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

test.concurrent.each<Revision>([...revisions])(
  'the MCP server passes the scenarios of revision %s, except those with an explanation',
  async (revision) => {
    const target = new URL('agents/conformance/mcp', deployment.gateway)
    await using proxy = await startBearerProxy(target, deployment.token)
    const runs = await runServerSuite(proxy.url, revision)
    expect(unexpectedOf(revision, runs)).toEqual([])
  },
)

test('the OAuth server passes the scenarios for authorization servers', async () => {
  expect(unexpectedOf(undefined, await runAuthorizationSuite(deployment))).toEqual([])
})
