/**
 * The error class and the table of error codes (docs/errors.md).
 * Codes are permanent: rows are added but never changed or removed. A test compares the table with `docs/errors.md`.
 */
export const errorTable = {
  ParseError: { code: -32700, status: 400, message: 'Parse error' },
  InvalidRequest: { code: -32600, status: 400, message: 'Invalid Request' },
  MethodNotFound: { code: -32601, status: 404, message: 'Method not found' },
  InvalidParams: { code: -32602, status: 400, message: 'Invalid params' },
  InternalError: { code: -32603, status: 500, message: 'Internal error' },
  TaskNotFound: { code: -32001, status: 404, message: 'Task not found' },
  TaskNotCancelable: { code: -32002, status: 400, message: 'Task cannot be canceled: it has already ended' },
  PushNotificationNotSupported: {
    code: -32003,
    status: 400,
    message: 'Push notifications are not supported',
  },
  UnsupportedOperation: { code: -32004, status: 400, message: 'Unsupported operation' },
  ContentTypeNotSupported: { code: -32005, status: 400, message: 'Content type not supported' },
  InvalidAgentResponse: { code: -32006, status: 500, message: 'Invalid agent response' },
  AuthenticatedExtendedCardNotConfigured: {
    code: -32007,
    status: 400,
    message: 'No authenticated extended card is configured',
  },
  TaskImmutable: { code: -32008, status: 400, message: 'Task has ended and cannot be changed' },
  AuthenticationRequired: { code: -32009, status: 401, message: 'Authentication required' },
  InvalidToken: { code: -32010, status: 401, message: 'Token is not active' },
  TokenExpired: { code: -32011, status: 401, message: 'Token has expired' },
  InvalidTokenSignature: { code: -32012, status: 403, message: 'DID signature was not accepted' },
  InsufficientPermissions: { code: -32013, status: 403, message: 'Token scope does not cover this method' },
  ContextNotFound: { code: -32020, status: 404, message: 'Context not found' },
  ContextNotCancelable: { code: -32021, status: 400, message: 'Context has running tasks' },
  SkillNotFound: { code: -32030, status: 404, message: 'Skill not found' },
  NotFound: { code: -32040, status: 404, message: 'Not found' },
  TooManyRequests: { code: -32041, status: 429, message: 'Too many requests' },
  Unavailable: { code: -32042, status: 503, message: 'Temporarily unavailable' },
  Conflict: { code: -32043, status: 409, message: 'Conflict' },
  VersionNotSupported: { code: -32044, status: 400, message: 'Protocol version not supported' },
  ExtensionSupportRequired: {
    code: -32045,
    status: 400,
    message: 'The client must declare support for a required extension',
  },
  PaymentRequired: { code: -32046, status: 402, message: 'The agent requires a payment' },
} as const satisfies Record<string, { code: number; status: number; message: string }>

export type ErrorName = keyof typeof errorTable

export type ErrorData = Record<string, unknown>

interface ErrorOptions {
  /** More specific than the table's text. It never contains stack traces, paths or driver messages. */
  message?: string
  /** `error.data`, always an object. */
  data?: ErrorData
  /** The HTTP status if it differs from the table: 405, 412, 413 or 415 (spec/json-rpc.md#http). */
  status?: number
  /** Extra response headers, for example `Retry-After`. */
  headers?: Record<string, string>
  cause?: unknown
}

/** Every failure that a caller may see. It can be thrown anywhere; one place turns it into an envelope. */
export class ParleyError extends Error {
  override readonly name = 'ParleyError'
  readonly error: ErrorName
  readonly code: number
  readonly status: number
  readonly data: ErrorData
  readonly headers: Record<string, string>

  constructor(error: ErrorName, options: ErrorOptions = {}) {
    const row = errorTable[error]
    super(options.message ?? row.message, { cause: options.cause })
    this.error = error
    this.code = row.code
    this.status = options.status ?? row.status
    this.data = options.data ?? {}
    this.headers = options.headers ?? {}
  }

  /** Converts any thrown value to a ParleyError. Other errors become `InternalError` without their message. */
  static from(thrown: unknown): ParleyError {
    return thrown instanceof ParleyError ? thrown : new ParleyError('InternalError', { cause: thrown })
  }
}
