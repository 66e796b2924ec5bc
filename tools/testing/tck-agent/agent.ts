import { setTimeout as delay } from 'node:timers/promises'
import { artifact, defineAgent, file, type HandlerContext, type Output, part } from '@parley/agent'

/** Twice the default of TCK_STREAMING_TIMEOUT, so that a client can subscribe to the running task. */
const longMs = 4000

type Scenario = (context: HandlerContext) => Iterable<Output> | AsyncIterable<Output>

const outputFile = file('output.txt', 'text/plain', 'tck')
const outputUrl = { name: 'output.txt', mimeType: 'text/plain', uri: 'https://example.com/output.txt' }

/** The behaviour of the agent for each prefix of a message ID, the longer prefixes first. */
const scenarios: readonly (readonly [prefix: string, Scenario])[] = [
  ['tck-stream-artifact-chunked', () => ['chunk-1 ', 'chunk-2']],
  ['tck-stream-artifact-text', () => [artifact('text', 'Streamed text content')]],
  ['tck-stream-artifact-file', () => [outputFile]],
  ['tck-stream-ordering-001', () => [artifact('text', 'Ordered output')]],
  ['tck-stream-001', () => [artifact('text', 'Stream hello from TCK')]],
  ['tck-stream-002', ({ reply }) => [reply('completed', { asTask: true })]],
  ['tck-stream-003', () => [artifact('text', 'Stream task lifecycle')]],
  ['tck-artifact-file-url', () => [artifact('file', part({ kind: 'file', file: outputUrl }))]],
  ['tck-artifact-file', () => [outputFile]],
  ['tck-artifact-text', () => [artifact('text', 'Generated text content')]],
  ['tck-artifact-data', () => [artifact('data', { key: 'value', count: 42 })]],
  ['tck-message-response', ({ reply }) => [reply('Direct message response')]],
  ['tck-input-required', ({ ask }) => [ask('More input is required')]],
  ['tck-reject-task', ({ decline }) => [decline('rejected')]],
  ['tck-', ({ reply }) => [reply('Hello from TCK', { asTask: true })]],
  ['test-resubscribe-message-id', keepsWorking],
  // The kit for A2A 0.3 continues and cancels the tasks that it creates.
  ['', ({ ask }) => [ask('More input is required')]],
]

async function* keepsWorking({ signal }: HandlerContext): AsyncGenerator<Output> {
  await delay(longMs, undefined, { signal })
  yield 'completed'
}

/**
 * The agent that the official A2A test kit (a2a-tck, branches 1.0-dev and 0.3.x) expects: the prefix of the message ID
 * selects its behaviour.
 */
export default defineAgent({
  name: 'tck',
  description: 'Behaves as the A2A test kit expects',
  skills: [
    {
      id: 'tck',
      name: 'TCK scenarios',
      description: 'Selects a scenario by the prefix of the message ID',
      tags: ['test'],
      inputModes: ['text/plain', 'application/json', 'image/*'],
      outputModes: ['text/plain', 'application/json'],
    },
  ],
  extendedCard: { description: 'Behaves as the A2A test kit expects, for callers with a token' },
  handle: (context) => {
    const id = context.message.messageName ?? context.message.messageId
    const [, scenario] = scenarios.find(([prefix]) => id.startsWith(prefix)) ?? []
    return scenario?.(context) ?? []
  },
})
