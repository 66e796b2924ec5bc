import {
  type AnyValue,
  type Logger,
  ROOT_CONTEXT,
  SeverityNumber,
  TraceFlags,
  trace,
} from '@opentelemetry/api'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'

/** The severity of each level of pino. */
const severities: Record<number, { number: SeverityNumber; text: string }> = {
  10: { number: SeverityNumber.TRACE, text: 'TRACE' },
  20: { number: SeverityNumber.DEBUG, text: 'DEBUG' },
  30: { number: SeverityNumber.INFO, text: 'INFO' },
  40: { number: SeverityNumber.WARN, text: 'WARN' },
  50: { number: SeverityNumber.ERROR, text: 'ERROR' },
  60: { number: SeverityNumber.FATAL, text: 'FATAL' },
}

/** Fields of a line that a record has in other places. */
const elsewhere = new Set(['level', 'time', 'msg', 'pid', 'name', 'trace_id', 'span_id'])

/** Returns a function that exports a log line. The line is already redacted. */
export function logLineExporter(logger: Logger): (line: string) => void {
  return (line) => {
    const entry = jsonObjectOf(line)
    if (entry === undefined) return
    const { level, time, msg, trace_id: traceId, span_id: spanId } = entry
    const severity = typeof level === 'number' ? severities[level] : undefined
    const attributes: Record<string, AnyValue> = {}
    for (const [name, value] of Object.entries(entry))
      if (!elsewhere.has(name)) attributes[name] = isObject(value) ? JSON.stringify(value) : valueOf(value)
    const isTraced = typeof traceId === 'string' && typeof spanId === 'string'
    logger.emit({
      timestamp: typeof time === 'string' ? new Date(time) : new Date(),
      ...(severity && { severityNumber: severity.number, severityText: severity.text }),
      body: typeof msg === 'string' ? msg : '',
      attributes: attributes as Record<string, string>,
      context: isTraced
        ? trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: TraceFlags.NONE })
        : ROOT_CONTEXT,
    })
  }
}

function valueOf(value: unknown): AnyValue {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value
  return JSON.stringify(value) ?? ''
}
