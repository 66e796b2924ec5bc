import { isResting } from '@parley/wire/model/task'
import type { TaskChange } from '../calls/agent-calls.ts'
import { type ChatView, chatChunk, errorEvent, messageOf, usageChunk } from './chat-answer.ts'
import { CurrentTask, type TurnTask } from './run-turn.ts'

/** Returns the events of a streamed answer after the first change of the task. */
export async function* chatEvents(
  first: TurnTask,
  changes: AsyncIterable<TaskChange>,
  { view, includeUsage }: { view: ChatView; includeUsage: boolean },
): AsyncGenerator<object | '[DONE]'> {
  const current = new CurrentTask(first)
  yield chatChunk(first, view, { role: 'assistant', content: '' })
  try {
    let sent = ''
    for await (const change of changes) {
      const text = current.apply(change)
      // JSON is complete only at the end.
      if (text !== '' && !view.isJson) {
        sent += text
        yield chatChunk(current.turn, view, { content: text })
      }
      if (isResting(current.task.status.state)) break
    }
    const { content, refusal } = await messageOf(current.turn, view)
    const rest = restOf(sent, content)
    if (rest !== '' || refusal !== null)
      yield chatChunk(current.turn, view, { content: rest, ...(refusal !== null && { refusal }) })
    yield chatChunk(current.turn, view, {}, true)
    if (includeUsage) yield usageChunk(await view.reread(current.turn), view)
    yield '[DONE]'
  } catch (error) {
    yield errorEvent(error)
  }
}

/**
 * Returns what is missing after the text that was sent. A task that runs again after a crash may produce another text, which then
 * follows the first one.
 */
export function restOf(sent: string, whole: string): string {
  if (whole.startsWith(sent)) return whole.slice(sent.length)
  return sent === '' ? whole : `\n\n${whole}`
}
