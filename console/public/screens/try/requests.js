/** The JSON-RPC requests of a conversation (docs/spec/methods.md#method-table). */

/**
 * @typedef {import('./conversation.js').Part} Part
 * @typedef {import('./attachments.js').Attachment} Attachment
 *
 * @typedef {{ jsonrpc: '2.0', id: string, method: string, params: Record<string, unknown> }} RpcRequest
 */

/** The choice of the gateway, instead of the slug of an agent. */
export const automatic = 'auto'

/**
 * The path of the gateway that takes the calls for an agent.
 * @param {string} agent
 */
export const pathOf = (agent) => (agent === automatic ? '/' : `/agents/${encodeURIComponent(agent)}/`)

/**
 * @param {string} method
 * @param {Record<string, unknown>} params
 * @returns {RpcRequest}
 */
export const rpcRequest = (method, params) => ({ jsonrpc: '2.0', id: crypto.randomUUID(), method, params })

/**
 * @param {object} message
 * @param {readonly Part[]} message.parts
 * @param {string} message.contextId
 * @param {string | undefined} [message.taskId] The paused task that the message continues
 * @param {string | undefined} [message.paymentSession] The completed session that pays for the message
 * @param {boolean} [message.streams]
 */
export function messageRequest({ parts, contextId, taskId, paymentSession, streams = true }) {
  return rpcRequest(streams ? 'message/stream' : 'message/send', {
    message: {
      role: 'user',
      kind: 'message',
      messageId: crypto.randomUUID(),
      contextId,
      ...(taskId !== undefined && { taskId }),
      parts,
      ...(paymentSession !== undefined && { metadata: { payment_session_id: paymentSession } }),
    },
  })
}

/**
 * @param {string} text
 * @param {readonly Attachment[]} files
 * @returns {Part[]}
 */
export function partsOf(text, files) {
  const texts = text.trim() === '' ? [] : [{ kind: 'text', text }]
  const parts = files.map(({ name, type, bytes }) => ({
    kind: 'file',
    file: { name, mime_type: type, bytes },
  }))
  return [...texts, ...parts]
}

/**
 * Returns a curl command for a request.
 * @param {string} url
 * @param {RpcRequest} request
 */
export function curlOf(url, request) {
  const body = JSON.stringify(request)
  return [
    `curl -N ${quoted(url)}`,
    `  -H "Authorization: Bearer $(npx parley token)"`,
    `  -H 'Content-Type: application/json'`,
    `  -d ${quoted(body)}`,
  ].join(' \\\n')
}

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/**
 * Returns JSON for people, in which long strings such as the bytes of files are shortened.
 * @param {unknown} value
 */
export const readableJson = (value) =>
  JSON.stringify(
    value,
    (_name, part) =>
      typeof part === 'string' && part.length > 4000
        ? `${part.slice(0, 200)}… (${part.length.toLocaleString('en')} characters)`
        : part,
    2,
  )
