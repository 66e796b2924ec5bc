import type { Store, TaskRecord } from '@parley/engine/store/store'
import { failed, ourText } from '@parley/engine/tasks/our-message'
import type { Change } from '@parley/engine/tasks/transitions'
import type { ClientKeys } from '@parley/kit/auth/client-keys'
import { persistently } from '@parley/kit/database/retry'
import type { Message } from '@parley/wire/model/task'
import type { Agent } from '../../author/agent.ts'
import { buildContext, newestMessage } from '../../author/build-context.ts'
import { callersMessages } from '../../author/callers-messages.ts'
import type { HandlerContext, HandlerLog } from '../../author/context.ts'
import { type FileFetching, FileNotFetchedError, fetchFiles, type PartsWithFiles } from './fetch-files.ts'
import { fitSkill } from './fit-skill.ts'
import { verifyCallersParts } from './verify-parts.ts'

/** A handler sees the newest 50 tasks of its context (spec/tasks.md#contexts). */
const contextHistoryMax = 50
/** After which time a storage that is away is asked again. */
const askAgainMs = 500

interface Run {
  agent: Agent
  store: Store
  record: TaskRecord
  firstOfContext: boolean
  signal: AbortSignal
  log: () => HandlerLog
  usage: HandlerContext['usage']
  clientKeys: ClientKeys | undefined
  files: FileFetching
  isStillPaid: ((record: TaskRecord) => Promise<boolean>) | undefined
}

/** Everything a handler is given; or the end of a task that nothing pays for, whose message does not fit its skill, or whose files cannot be had. */
export async function prepareRun(run: Run): Promise<{ context: HandlerContext } | { ends: Change }> {
  const { agent, store, record } = run
  if (!(await isPaid(run))) return { ends: failed(record, notPaid) }
  const said = callersMessages(record.history)
  const fit = await fitSkill(agent, said)
  if ('reason' in fit) return { ends: { kind: 'reject', message: ourText(record, fit.reason) } }
  const fetched = await fetchFiles(partsWithFiles(record, said), run.files, run.signal).catch(notFetched)
  if (fetched instanceof FileNotFetchedError) {
    const message = ourText(record, fetched.message)
    return { ends: fetched.refused ? { kind: 'reject', message } : { kind: 'fail', message } }
  }
  const foreign = new Map(record.foreignReferences?.map((task) => [task.id, task]))
  const references = await patiently(run, () =>
    Promise.all(
      record.referenceTaskIds.map(async (id) => foreign.get(id) ?? store.findTask(id, record.owner)),
    ),
  )
  const contextHistory = run.firstOfContext
    ? []
    : await patiently(run, () => store.contextHistory(record.contextId, record.owner, contextHistoryMax))
  const context = buildContext({
    record,
    references: references.filter((found) => found !== undefined),
    contextHistory,
    skillId: fit.skill?.id,
    input: fit.input,
    signal: run.signal,
    log: run.log,
    usage: run.usage,
    fetched,
    verified: await verifyCallersParts(newestMessage(record).parts, record.owner, run.clientKeys),
  })
  return { context }
}

const notPaid = 'Nothing pays for this task any more: its payment was paid back before the work began.'

function isPaid(run: Run): boolean | Promise<boolean> {
  const { record, isStillPaid } = run
  if (record.payments === undefined || isStillPaid === undefined) return true
  return patiently(run, () => isStillPaid(record))
}

/** A storage that is away is not the task's failure: it waits, until it is told to stop. */
async function patiently<T>({ signal, log }: Run, ask: () => Promise<T>): Promise<T> {
  const answer = await persistently(ask, {
    retryMs: askAgainMs,
    signal,
    log: { warn: (fields, text) => log().warn(fields, text) },
  })
  if (answer === undefined) signal.throwIfAborted()
  return answer as T
}

/** After a question of ours the files of the messages before it are still what the task is about. */
function partsWithFiles(record: TaskRecord, said: Message[]): PartsWithFiles {
  const newest = newestMessage(record)
  const earlier = said.filter((message) => message !== newest).toReversed()
  return { newest: newest.parts, earlier: earlier.flatMap(({ parts }) => parts) }
}

function notFetched(error: unknown): FileNotFetchedError {
  if (error instanceof FileNotFetchedError) return error
  throw error
}
