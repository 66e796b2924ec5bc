/**
 * A position in a trace in the form of W3C Trace Context. Headers, `_meta` of MCP and task records have the same fields.
 */
export interface TraceContext {
  traceparent: string
  tracestate?: string
}

/** The parts of a `traceparent` that passed all checks. */
export interface TraceParent {
  traceId: string
  spanId: string
  isSampled: boolean
}

/** Later versions may append fields, which are ignored. */
const form =
  /^(?!ff)([\da-f]{2})-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(?:$|-[\x20-\x7e]{0,256}$)/
const traceparentMaxChars = 512
/** W3C Trace Context requires at least these 512 characters and 32 members. */
const [stateMaxChars, stateMembersMax] = [512, 32]
const stateMember =
  /^[a-z\d][a-z\d_\-*/]{0,240}(?:@[a-z][a-z\d_\-*/]{0,13})?=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}$/

/** Returns undefined for a value that is not a `traceparent`, because a malformed one must be ignored. */
export function parseTraceParent(value: unknown): TraceParent | undefined {
  if (typeof value !== 'string' || value.length > traceparentMaxChars) return undefined
  const [, version, traceId, spanId, flags] = form.exec(value) ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined
  if (version === '00' && value.length !== 55) return undefined
  return { traceId, spanId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** Writes a `traceparent` of version 00. */
export function writeTraceParent({ traceId, spanId, isSampled }: TraceParent): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`
}

/**
 * Returns the trace context of a caller, from request headers or from `_meta` of MCP. Malformed values are ignored, and
 * `tracestate` is only used together with a valid `traceparent`. Baggage is not read.
 */
export function traceContextIn(fields: Readonly<Record<string, unknown>>): TraceContext | undefined {
  const given = fields['traceparent']
  if (given === undefined) return undefined
  const parent = parseTraceParent(given)
  if (parent === undefined) return undefined
  const traceparent = writeTraceParent(parent)
  const tracestate = traceStateOf(fields['tracestate'])
  return tracestate === undefined ? { traceparent } : { traceparent, tracestate }
}

/** The id of the trace, which log lines and records of decisions and tasks have. */
export function traceIdOf(context: Pick<TraceContext, 'traceparent'> | undefined): string | undefined {
  return parseTraceParent(context?.traceparent)?.traceId
}

function traceStateOf(value: unknown): string | undefined {
  if (typeof value !== 'string' || value.length > stateMaxChars) return undefined
  const members = value
    .split(',')
    .map((member) => member.trim())
    .filter((member) => member !== '')
  if (members.length === 0 || members.length > stateMembersMax) return undefined
  const keys = new Set(members.map((member) => member.slice(0, member.indexOf('='))))
  if (keys.size < members.length || !members.every((member) => stateMember.test(member))) return undefined
  return members.join(',')
}
