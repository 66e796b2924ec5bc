import type { ClientKeys } from '../auth/client-keys.ts'
import type { Agent, Skill } from '../handler/agent.ts'
import { buildContext, dataOf, newestMessage } from '../handler/build-context.ts'
import { callersMessages } from '../handler/callers-messages.ts'
import type { HandlerContext, HandlerLog } from '../handler/context.ts'
import type { Message } from '../protocol/task.ts'
import type { Store, TaskRecord } from '../store/store.ts'
import { type FileFetching, FileNotFetchedError, fetchFiles, type PartsWithFiles } from './fetch-files.ts'
import { ourText } from './our-message.ts'
import type { Change } from './transitions.ts'
import { verifyCallersParts } from './verify-parts.ts'

/** Design gaps: a handler sees the newest 50 tasks of its context. */
const contextHistoryMax = 50

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
}

/** Everything a handler is given; or the end of a task whose message does not fit the skill's input, or whose files cannot be had. */
export async function prepareRun(run: Run): Promise<{ context: HandlerContext } | { ends: Change }> {
  const { agent, store, record } = run
  // An answer to our question need not repeat the data, or the skill, of the first message.
  const said = callersMessages(record.history)
  const named = skillNamed(said)
  const skill = named === undefined ? onlySkill(agent) : agent.skills.find(({ id }) => id === named)
  if (named !== undefined && skill === undefined) {
    const reason = `This agent has no skill of that id; it has ${agent.skills.map(({ id }) => id).join(', ')}.`
    return { ends: { kind: 'reject', message: ourText(record, reason) } }
  }
  const parsed = await skill?.input?.safeParseAsync(dataOf(said.flatMap(({ parts }) => parts)))
  if (skill !== undefined && parsed !== undefined && !parsed.success) {
    const faults = parsed.error.issues.map(({ path, message }) => `${path.join('.') || 'data'}: ${message}`)
    const reason = `The message does not fit the skill ${skill.id}: ${faults.slice(0, 20).join('; ')}`
    return { ends: { kind: 'reject', message: ourText(record, reason) } }
  }
  const fetched = await fetchFiles(partsWithFiles(record, said), run.files, run.signal).catch(notFetched)
  if (fetched instanceof FileNotFetchedError) {
    const message = ourText(record, fetched.message)
    return { ends: fetched.refused ? { kind: 'reject', message } : { kind: 'fail', message } }
  }
  const foreign = new Map(record.foreignReferences?.map((task) => [task.id, task]))
  const references = await Promise.all(
    record.referenceTaskIds.map(async (id) => foreign.get(id) ?? store.findTask(id, record.owner)),
  )
  const contextHistory = run.firstOfContext
    ? []
    : await store.contextHistory(record.contextId, record.owner, contextHistoryMax)
  const context = buildContext({
    record,
    references: references.filter((found) => found !== undefined),
    contextHistory,
    skillId: skill?.id,
    input: parsed?.data,
    signal: run.signal,
    log: run.log,
    usage: run.usage,
    fetched,
    verified: await verifyCallersParts(newestMessage(record).parts, record.owner, run.clientKeys),
  })
  return { context }
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

/** The skill that the caller named last. */
function skillNamed(said: Message[]): string | undefined {
  const names = said.map(({ metadata }) => metadata?.['skill_id'] ?? metadata?.['skillId'])
  return names.findLast((name) => typeof name === 'string')
}

const onlySkill = ({ skills }: Agent): Skill | undefined => (skills.length === 1 ? skills[0] : undefined)
