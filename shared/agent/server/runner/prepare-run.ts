import type { Store, TaskRecord } from '@parley/engine/store/store'
import { agentText, failed } from '@parley/engine/tasks/agent-message'
import type { Change } from '@parley/engine/tasks/transitions'
import type { ClientKeys } from '@parley/kit/auth/client-keys'
import { persistently } from '@parley/kit/database/retry'
import { partSignature, verifyPart } from '@parley/kit/did/part-signature'
import type { Message, Part } from '@parley/wire/model/task'
import bs58 from 'bs58'
import type { Agent } from '../../author/agent.ts'
import { buildContext, newestMessage, senderOf } from '../../author/build-context.ts'
import { callersMessages } from '../../author/callers-messages.ts'
import type { HandlerContext, HandlerLog } from '../../author/context.ts'
import { type FileFetching, FileNotFetchedError, fetchFiles, type PartsWithFiles } from './fetch-files.ts'
import { fitSkill } from './fit-skill.ts'

/** A handler sees the newest 50 tasks of its context (spec/tasks.md#contexts). */
const contextHistoryMax = 50
/** The delay between attempts to read from an unavailable store. */
const retryMs = 500

interface Run {
  agent: Agent
  store: Store
  record: TaskRecord
  firstOfContext: boolean
  signal: AbortSignal
  log: () => HandlerLog
  usage: HandlerContext['usage']
  agents: () => HandlerContext['agents']
  clientKeys: ClientKeys | undefined
  files: FileFetching
  isStillPaid: ((record: TaskRecord) => Promise<boolean>) | undefined
}

/**
 * Prepares the handler's argument. `ends` is the change that ends the task without a run if its payment was refunded,
 * its message does not match the skill, or a file cannot be fetched.
 */
export async function prepareRun(run: Run): Promise<{ context: HandlerContext } | { ends: Change }> {
  const { agent, store, record } = run
  if (!(await isPaid(run))) return { ends: failed(record, notPaid) }
  const messages = callersMessages(record.history)
  const fit = await fitSkill(agent, messages)
  if ('reason' in fit) return { ends: { kind: 'reject', message: agentText(record, fit.reason) } }
  const fetched = await fetchFiles(partsWithFiles(record, messages), run.files, run.signal).catch(notFetched)
  if (fetched instanceof FileNotFetchedError) {
    const message = agentText(record, fetched.message)
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
    references: references.filter((task) => task !== undefined),
    contextHistory,
    skillId: fit.skill?.id,
    input: fit.input,
    signal: run.signal,
    log: run.log,
    usage: run.usage,
    agents: run.agents,
    fetched,
    verified: await verifyCallersParts(newestMessage(record).parts, senderOf(record), run.clientKeys),
  })
  return { context }
}

const notPaid = 'The payment for this task was refunded before the task started.'

function isPaid(run: Run): boolean | Promise<boolean> {
  const { record, isStillPaid } = run
  if (record.payments === undefined || isStillPaid === undefined) return true
  return patiently(run, () => isStillPaid(record))
}

/** Retries until the signal aborts, so that an unavailable store does not fail the task. @throws the abort reason */
async function patiently<T>({ signal, log }: Run, read: () => Promise<T>): Promise<T> {
  const result = await persistently(async () => ({ value: await read() }), {
    retryMs,
    signal,
    log: { warn: (fields, text) => log().warn(fields, text) },
  })
  if (result !== undefined) return result.value
  signal.throwIfAborted()
  throw new Error('the read was aborted')
}

/** Includes files of earlier messages, because the newest message may merely answer a question about them. */
function partsWithFiles(record: TaskRecord, messages: Message[]): PartsWithFiles {
  const newest = newestMessage(record)
  const earlier = messages.filter((message) => message !== newest).toReversed()
  return { newest: newest.parts, earlier: earlier.flatMap(({ parts }) => parts) }
}

function notFetched(error: unknown): FileNotFetchedError {
  if (error instanceof FileNotFetchedError) return error
  throw error
}

/**
 * Whether each signed part was signed with the caller's key (spec/messages-and-artifacts.md#signatures). Empty if the key
 * cannot be read.
 */
async function verifyCallersParts(
  parts: readonly Part[],
  sender: string,
  clientKeys: ClientKeys | undefined,
): Promise<ReadonlyMap<Part, boolean>> {
  const signed = parts.filter(({ metadata }) => metadata?.[partSignature] !== undefined)
  if (clientKeys === undefined || signed.length === 0 || !sender.startsWith('did:')) return new Map()
  const key = await clientKeys.publicKey(sender).catch(() => undefined)
  if (key === undefined) return new Map()
  const keys = [bs58.encode(key)]
  return new Map(signed.map((part) => [part, verifyPart(part, keys) === 'verified']))
}
