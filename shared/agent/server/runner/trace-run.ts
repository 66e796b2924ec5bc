import type { TaskRecord } from '@parley/engine/store/store'
import { inSpan, type Span, tracing } from '@parley/kit/telemetry/tracing'
import { millisOf } from '@parley/wire/model/timestamp'
import type { RunUsage } from './usage.ts'

/**
 * Makes a run two steps of the trace of its task, the wait in the queue and the run itself. Both follow the stored trace, so
 * that they belong to it also after a restart.
 */
export async function traceRun(
  record: TaskRecord,
  { agent, holder }: { agent: string; holder: string },
  run: () => Promise<void>,
): Promise<void> {
  const active = tracing()
  if (active === undefined) return run()
  const parent = record.trace ?? 'none'
  const { state, timestamp } = record.status
  const task = { 'parley.task.id': record.id, 'gen_ai.agent.name': agent }
  const since = state === 'submitted' ? timestamp : record.updatedAt
  active.start('wait in queue', { parent, attributes: task, startedAt: millisOf(since) }).end()
  const attributes = {
    ...task,
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.conversation.id': record.contextId,
    // A task that was created while a worker was free has counted its start already.
    'parley.attempt': record.lease?.holder === holder ? record.starts : record.starts + 1,
  }
  await inSpan('run task', { parent, attributes }, run)
}

/** Adds how the run ended to its span. */
export function traceOutcome({ status: { state } }: TaskRecord): void {
  const span = tracing()?.current()
  span?.set({ 'parley.task.state': state })
  if (state === 'failed') span?.fail('failed')
}

/** Runs the handler as a step of the run. */
export function traceHandler<T>(usage: Pick<RunUsage, 'total'>, handle: () => Promise<T>): Promise<T> {
  if (tracing() === undefined) return handle()
  return inSpan('handle', {}, async (span) => {
    try {
      return await handle()
    } finally {
      setUsage(span, usage)
    }
  })
}

function setUsage(span: Span, { total }: Pick<RunUsage, 'total'>): void {
  span.set({
    'gen_ai.usage.input_tokens': total?.inputTokens,
    'gen_ai.usage.output_tokens': total?.outputTokens,
  })
}
