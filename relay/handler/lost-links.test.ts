import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { testAgent } from '@parley/agent/testing'
import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { A2aClient } from '../client/a2a-client.ts'
import { openLinks } from '../store/links.ts'
import { relayedRun } from './relayed-run.ts'

let disposables = new AsyncDisposableStack()
beforeEach(() => {
  disposables = new AsyncDisposableStack()
})
afterEach(() => disposables.disposeAsync())

test('a second start without a link sends nothing where a failure of the machine may have lost the link', async () => {
  const { caller, methods } = await startedTwice(await folder())
  const task = await caller.sendAndWait('hello')
  expect(task.status).toMatchObject({
    state: 'failed',
    message: {
      parts: [{ text: expect.stringContaining('it is not known whether the agent has received it') }],
    },
  })
  expect(methods()).toEqual([])
})

test('a second start without a link sends the message where links are durable', async () => {
  const { caller, methods } = await startedTwice(undefined)
  expect((await caller.sendAndWait('hello')).status.state).toBe('completed')
  expect(methods()).toEqual(['SendMessage'])
})

async function folder(): Promise<string> {
  const made = await mkdtemp(path.join(os.tmpdir(), 'relay-'))
  disposables.defer(() => rm(made, { recursive: true }))
  return made
}

/**
 * Starts an agent in which the first run of a task appears as the second.
 * @param linksIn the folder of a file for the links; undefined: memory
 */
async function startedTwice(linksIn: string | undefined) {
  const status = { state: 'TASK_STATE_COMPLETED' }
  const foreign = disposables.use(
    await startForeignAgent((_request, reply) =>
      reply.result({ task: { id: 't-1', contextId: 'c-1', status } }),
    ),
  )
  const allowed = parseAllowedHosts('127.0.0.1')
  const dialect = dialectNamed('a2a-v1')
  const client = disposables.use(new A2aClient({ url: foreign.url, dialect, streaming: false, allowed }))
  const storeUrl = linksIn === undefined ? 'memory:' : undefined
  const links = disposables.use(await openLinks({ storeUrl, folder: linksIn ?? '' }))
  const relay = { entryId: 'foreign', client, links, streaming: false, outputMaxBytes: 100_000 }
  const agent = await testAgent(
    { handle: (context) => relayedRun(relay, { ...context, task: { ...context.task, starts: 2 } }) },
    { store: 'memory', drainMs: 0 },
  )
  disposables.use(agent.app)
  return { caller: agent.caller('alice'), methods: () => foreign.requests.map(({ method }) => method) }
}
