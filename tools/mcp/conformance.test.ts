import { afterAll, beforeAll, expect, test } from 'vitest'
import { type InteropDeployment, startDeployment } from '../interop/deployment.ts'
import { runAuthorizationSuite } from './authorization.ts'
import { unexpectedOf } from './results.ts'

let deployment: InteropDeployment

beforeAll(async () => {
  deployment = await startDeployment(['../tools/testing/mcp-agent'])
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

test('the OAuth server passes the scenarios for authorization servers', async () => {
  expect(unexpectedOf(undefined, await runAuthorizationSuite(deployment))).toEqual([])
})
