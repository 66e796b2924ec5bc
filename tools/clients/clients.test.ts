import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type InteropDeployment, startDeployment } from '../interop/deployment.ts'
import { inspectorClients, inspectorIsThere } from './mcp-inspector.ts'
import { mcpClients } from './mcp-sdk.ts'
import { openaiNode } from './openai-node.ts'
import {
  mcpPythonClient,
  mcpPythonIsThere,
  openaiPythonClient,
  openaiPythonIsThere,
} from './python-clients.ts'
import { calledAgents, failuresIn, runClient, type TestedClient } from './step.ts'

let deployment: InteropDeployment

beforeAll(async () => {
  deployment = await startDeployment(calledAgents)
})
afterAll(() => deployment?.[Symbol.asyncDispose]())

const failuresOf = async (client: TestedClient) => failuresIn(await runClient(client, deployment))

test.each([...mcpClients, openaiNode])('every step of $name passes', async (client) => {
  expect(await failuresOf(client)).toEqual([])
})

describe.skipIf(!inspectorIsThere())('the command line of the inspector (needs mcp-inspector)', () => {
  test.each(inspectorClients)('every step of $name passes', async (client) => {
    expect(await failuresOf(client)).toEqual([])
  })
})

test.skipIf(!openaiPythonIsThere())('every step of openai of PyPI passes (needs openai-python)', async () => {
  expect(await failuresOf(openaiPythonClient)).toEqual([])
})

test.skipIf(!mcpPythonIsThere())('every step of mcp of PyPI passes (needs mcp-python)', async () => {
  expect(await failuresOf(mcpPythonClient)).toEqual([])
})
