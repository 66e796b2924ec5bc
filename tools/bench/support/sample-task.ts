/** The body of a completed task in the embedded store: a message, an artifact and three events in 1,300 characters. */
export function sampleTask(id: string, contextId: string, at: string): string {
  const question = {
    kind: 'text',
    text: 'How long is a mile in kilometres, and how many of them does it take to Rome?',
  }
  const answer = {
    kind: 'text',
    text: 'A mile is 1.609344 kilometres.',
    metadata: { 'did.message.signature': 'x'.repeat(88) },
  }
  const message = { role: 'user', parts: [question], messageId: id, contextId, taskId: id }
  const artifact = { artifactId: id, name: 'answer', parts: [answer] }
  const said = { role: 'assistant', parts: [answer], messageId: contextId, contextId, taskId: id }
  const event = (sequence: number, state: string, final: boolean) => ({
    eventId: `${id.slice(0, -1)}${sequence}`,
    sequence,
    timestamp: at,
    kind: 'status-update',
    status: { state, timestamp: at },
    final,
  })
  const update = { eventId: id, sequence: 2, timestamp: at, kind: 'artifact-update', artifactId: id }
  return JSON.stringify({
    status: { state: 'completed', timestamp: at },
    history: [message, said],
    artifacts: [artifact],
    events: [event(1, 'working', false), update, event(3, 'completed', true)],
    starts: 1,
    workedMs: 4,
    referenceTaskIds: [],
    acceptedOutputModes: ['text/plain'],
  })
}
