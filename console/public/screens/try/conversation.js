/** The state of a conversation: one turn per task, changed by the events of its stream (docs/spec/streaming.md#frames). */

/**
 * @typedef {{ name?: string, mime_type?: string, bytes?: string, uri?: string }} WireFile
 * @typedef {{ kind: string, text?: string, data?: unknown, file?: WireFile, metadata?: Record<string, unknown> }} Part
 * @typedef {{ role: string, parts: Part[] }} Said
 * @typedef {{ artifact_id: string, name: string, parts: Part[], partial?: boolean }} Artifact
 * @typedef {{ state: string, timestamp?: string, message?: Said }} Status
 * @typedef {{ id: string, context_id: string, status: Status, history?: Said[], artifacts?: Artifact[] }} Task
 * @typedef {object} TaskEvent
 * @property {string} kind
 * @property {string} task_id
 * @property {string} [context_id]
 * @property {number} [sequence]
 * @property {Status} [status]
 * @property {Artifact} [artifact]
 * @property {boolean} [append]
 * @property {boolean} [final]
 *
 * @typedef {object} Turn A task in a conversation
 * @property {string} key
 * @property {string | undefined} taskId Undefined until the server has answered
 * @property {string | undefined} agent The slug of the agent
 * @property {string | undefined} decisionId The decision of the gateway for this agent
 * @property {string} state
 * @property {Said[]} messages
 * @property {string} progress The newest message about the work so far
 * @property {Artifact[]} artifacts
 * @property {number} sequence The number of the last event that was received
 * @property {string} error Why the message was not accepted, or the stream ended early
 * @property {boolean} unpaid Whether the agent refused the message because it is not paid
 */

const ended = new Set(['completed', 'failed', 'canceled', 'rejected'])
const paused = new Set(['input-required', 'auth-required', 'payment-required', 'negotiation-bid-submitted'])

/** @param {string} state */
export const hasEnded = (state) => ended.has(state)
/** @param {string} state */
export const isPaused = (state) => paused.has(state)

/**
 * Returns a turn for a message that was not answered yet.
 * @param {string} key
 * @param {Part[]} parts
 * @returns {Turn}
 */
export function newTurn(key, parts) {
  return {
    key,
    taskId: undefined,
    agent: undefined,
    decisionId: undefined,
    state: 'sending',
    messages: [{ role: 'user', parts }],
    progress: '',
    artifacts: [],
    sequence: 0,
    error: '',
    unpaid: false,
  }
}

/**
 * Returns the turn of a stored task.
 * @param {Task} task
 * @returns {Turn}
 */
export function turnOfTask(task) {
  const artifacts = task.artifacts ?? []
  const history = task.history ?? []
  const said = history.map(({ role, parts }) => ({ role, parts }))
  const { state, message } = task.status
  // The history of a completed task ends with the text of its result, which the artifact shows.
  if (state === 'completed' && said.at(-1)?.role === 'assistant' && artifacts.some(isResult)) said.pop()
  return {
    ...newTurn(task.id, []),
    taskId: task.id,
    state,
    messages: said,
    progress: state === 'working' && message !== undefined ? textOf(message.parts) : '',
    artifacts,
  }
}

/** @param {Artifact} artifact */
const isResult = ({ parts }) => parts.some(({ kind }) => kind === 'text')

/**
 * Returns the turn after an event of its stream.
 * @param {Turn} turn
 * @param {TaskEvent} event
 * @returns {Turn}
 */
export function turnAfter(turn, event) {
  // After a reconnection, an event may arrive a second time.
  if (event.sequence !== undefined && event.sequence > 0 && event.sequence <= turn.sequence) return turn
  const next = { ...turn, taskId: event.task_id, unpaid: false, sequence: event.sequence ?? turn.sequence }
  if (event.kind === 'status-update' && event.status !== undefined) return withStatus(next, event.status)
  if (event.kind === 'artifact-update' && event.artifact !== undefined) return withArtifact(next, event)
  return next
}

/**
 * @param {Turn} turn
 * @param {Status} status
 * @returns {Turn}
 */
function withStatus(turn, { state, message }) {
  const changed = { ...turn, state, progress: '' }
  if (message === undefined) return changed
  if (!hasEnded(state) && !isPaused(state)) return { ...changed, progress: textOf(message.parts) }
  // A stream that starts again begins with the current status, whose message is already in the history.
  const text = textOf(message.parts)
  const last = turn.messages.at(-1)
  if (last !== undefined && last.role !== 'user' && textOf(last.parts) === text) return changed
  return { ...changed, messages: [...turn.messages, { role: 'agent', parts: message.parts }] }
}

/**
 * Deltas have no number: the first one of an artifact replaces its content and the others are appended. The finished artifact
 * replaces the content built from them.
 * @param {Turn} turn
 * @param {TaskEvent} event
 * @returns {Turn}
 */
function withArtifact(turn, { artifact, append, sequence }) {
  if (artifact === undefined) return turn
  const partial = sequence === undefined
  const known = turn.artifacts.find(({ artifact_id: id }) => id === artifact.artifact_id)
  const parts = append && known !== undefined ? joined(known.parts, artifact.parts) : artifact.parts
  const changed = { ...artifact, parts, partial }
  if (known === undefined) return { ...turn, artifacts: [...turn.artifacts, changed] }
  return { ...turn, artifacts: turn.artifacts.map((other) => (other === known ? changed : other)) }
}

/**
 * @param {Part[]} before
 * @param {Part[]} added
 */
function joined(before, added) {
  const parts = [...before]
  for (const part of added) {
    const last = parts.at(-1)
    if (last?.kind === 'text' && part.kind === 'text')
      parts[parts.length - 1] = { ...last, text: (last.text ?? '') + (part.text ?? '') }
    else parts.push(part)
  }
  return parts
}

/**
 * Returns the turn after the user's next message to a paused task.
 * @param {Turn} turn
 * @param {Part[]} parts
 * @returns {Turn}
 */
export function turnWithReply(turn, parts) {
  return { ...turn, state: 'sending', error: '', messages: [...turn.messages, { role: 'user', parts }] }
}

/** @param {readonly Part[]} parts */
export const textOf = (parts) =>
  parts.flatMap(({ kind, text }) => (kind === 'text' && text !== undefined ? [text] : [])).join('\n')

/**
 * Returns the offer of a task that waits for the acceptance of its bid.
 * @param {Turn} turn
 * @returns {Record<string, unknown> | undefined}
 */
export function bidOf(turn) {
  if (turn.state !== 'negotiation-bid-submitted') return undefined
  const data = turn.messages.at(-1)?.parts.find(({ kind }) => kind === 'data')?.data
  return typeof data === 'object' && data !== null ? { ...data } : {}
}
