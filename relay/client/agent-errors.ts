import { ParleyError } from '@parley/wire/errors'

/** An agent could not be reached, or it did not answer. `message` is a sentence without addresses. */
export class AgentUnreachable extends Error {
  override readonly name = 'AgentUnreachable'
  /** Whether the agent may have received the request. */
  readonly received: boolean
  /** How long the agent asks its clients to wait, in milliseconds. */
  readonly retryAfterMs: number | undefined

  constructor(
    message: string,
    options: { received: boolean; retryAfterMs?: number | undefined; cause?: unknown },
  ) {
    super(message, { cause: options.cause })
    this.received = options.received
    this.retryAfterMs = options.retryAfterMs
  }
}

/** The agent answered with an error. */
export class AgentRefused extends Error {
  override readonly name = 'AgentRefused'
  readonly error: ParleyError['error']

  constructor(error: ParleyError) {
    super(error.message, { cause: error })
    this.error = error.error
  }
}

/** The agent's answer does not follow the protocol or exceeds a limit. A repetition does not help. */
export class InvalidAgentAnswer extends Error {
  override readonly name = 'InvalidAgentAnswer'
  /** The HTTP status of an answer without a JSON-RPC result. */
  readonly status: number | undefined

  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

/** Returns the error for an answer with HTTP 401 or 403. */
export function credentialRefused(status: 401 | 403, hasCredential: boolean, reason?: string): AgentRefused {
  const name = status === 401 ? 'AuthenticationRequired' : 'InsufficientPermissions'
  if (status === 401 && !hasCredential) {
    const message =
      'The agent requires a credential, and the gateway has none. The operator sets it with npx parley admit <agent> --credential'
    return new AgentRefused(new ParleyError(name, { message }))
  }
  const why = status === 401 ? 'does not accept' : 'grants too little to'
  const detail = reason === undefined ? '' : `: ${reason}`
  const message = `The agent ${why} the credential of this gateway${detail}`
  return new AgentRefused(new ParleyError(name, { message }))
}

/** Returns the message with that of the failed connection behind it, such as a name that does not resolve. */
export function messageWithCause({ message, cause }: Error): string {
  return cause instanceof Error && cause.message !== '' ? `${message}: ${cause.message}` : message
}
