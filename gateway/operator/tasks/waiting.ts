import type { waitingAnswer, waitingQuery } from '@parley/wire/codecs/answers/operator/tasks'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { z } from 'zod'
import type { Registry } from '../../registry/registry.ts'
import { type CallerView, showsTexts } from '../view.ts'
import type { ListedTask, TaskLists } from './task-list.ts'

export type Waiting = z.output<typeof waitingAnswer>

const admissionsMax = 200
const nameMaxChars = 200
const questionMaxChars = 2000

/** Lists the tasks and the agents that wait for a person (spec/operator.md#waiting). */
export async function listWaiting(
  { lists, registry }: { lists: Pick<TaskLists, 'list'>; registry: Pick<Registry, 'all'> },
  view: CallerView,
  query: z.output<typeof waitingQuery>,
): Promise<Waiting> {
  const page = await lists.list(view, { ...query, waiting: true })
  const isFirst = query.cursor === undefined && query.agent === undefined && query.owner === undefined
  return {
    ...page,
    tasks: page.tasks.map((task) => waitingTask(task, view)),
    admissions: isFirst && view.owner === undefined ? admissionsOf(registry) : [],
  }
}

function waitingTask(task: ListedTask, view: CallerView): Waiting['tasks'][number] {
  const { question, payment = null, expires_at = null, reason, owner } = task
  const shown = view.owner !== undefined || showsTexts(view, owner)
  const text = question ?? reason
  return {
    ...task,
    question: shown && text !== null ? cleanLine(text, questionMaxChars) : null,
    payment,
    expires_at,
  }
}

function admissionsOf(registry: Pick<Registry, 'all'>): Waiting['admissions'] {
  return registry
    .all()
    .filter(({ admitted, left }) => !admitted && left === undefined)
    .slice(0, admissionsMax)
    .map(({ slug, name, registeredAt, verified }) => ({
      agent: slug,
      name: cleanLine(name, nameMaxChars),
      registered_at: registeredAt,
      reason: verified
        ? 'The agent has proven its key and receives no work before an operator admits it.'
        : 'The agent has not proven a key and receives no work before an operator admits it.',
    }))
}
