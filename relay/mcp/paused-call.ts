import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import { InvalidAgentAnswer } from '../client/agent-errors.ts'
import type { TaskLink } from '../store/links.ts'

const pauseMaxChars = 1024 * 1024

/** What a paused task needs to continue, kept with its link. */
const pausedCall = z.object({
  tool: z.string(),
  arguments: z.custom<JsonObject>(isJsonObject),
  requests: z.array(
    z.object({
      key: z.string(),
      message: z.string(),
      schema: z.custom<JsonObject>(isJsonObject).optional(),
      url: z.string().optional(),
    }),
  ),
  state: z.string().optional(),
  /** The keys of requests of a task that have been answered, which the server may show for some time. */
  answered: z.array(z.string()).default([]),
})
export type PausedCall = z.infer<typeof pausedCall>

/** The key of the request in a call that is still open. */
export const openKey = 'open-call'
export const isOfOpenCall = ({ requests }: PausedCall) => requests.some(({ key }) => key === openKey)

export function pausedIn(link: TaskLink | undefined): PausedCall | undefined {
  return link?.pause === undefined ? undefined : pausedCall.safeParse(jsonObjectOf(link.pause)).data
}

/** @throws InvalidAgentAnswer if the server sent too much */
export function pauseText(
  paused: Omit<PausedCall, 'answered'> & Partial<Pick<PausedCall, 'answered'>>,
): string {
  const text = JSON.stringify(paused)
  if (text.length > pauseMaxChars)
    throw new InvalidAgentAnswer('The request of the server for input is too large')
  return text
}
