import { z } from 'zod'
import type { PushConfigInput, PushConfigState } from '../../model/call.ts'
import type { Ids } from '../../model/ids.ts'
import type { JsonObject } from '../../model/task.ts'
import { optionalId } from './message.ts'
import { dialectName } from './name.ts'
import { optionalText, protoObject } from './proto-json.ts'

/** Both become an HTTP header (RFC 9110, 11.4). */
const authenticationInfo = protoObject({
  scheme: z.string().regex(/^[\w!#$%&'*+.^`|~-]{1,64}$/, 'must be the name of an HTTP authentication scheme'),
  credentials: z
    .string()
    .max(4096)
    .regex(/^[\x20-\x7e]*$/, 'must be printable ASCII')
    .default(''),
})

/** The fields of a TaskPushNotificationConfig. URL and token are checked at registration. */
export const pushConfigFields = {
  id: optionalId,
  url: z.string().min(1, 'is missing').max(4096),
  token: optionalText(4096),
  authentication: authenticationInfo.optional(),
}
export const pushConfigIn = protoObject(pushConfigFields)

/** Without an ID, the server makes one. */
export function toPushConfig(sent: z.output<typeof pushConfigIn>, ids: Ids): PushConfigInput {
  const named = sent.id === undefined ? undefined : ids(sent.id)
  const { url, token, authentication } = sent
  const config = { ...named, url, token, dialect: dialectName }
  if (authentication === undefined || authentication.credentials !== '')
    return { ...config, credentials: authentication }
  return { ...config, authentication: { schemes: [authentication.scheme] } }
}

/** Writes a webhook for the task's owner only, because it contains the token and the credentials. */
export function pushConfigOut({ task, ...config }: PushConfigState) {
  return { taskId: task.id, ...configOut(config) }
}

export function configOut({ id, name, url, token, credentials, authentication }: PushConfigInput) {
  return { id: name ?? id, url, token, authentication: credentials ?? schemeIn(authentication) }
}

const listed = z.object({ schemes: z.tuple([z.string()], z.string()) })

/** A webhook without credentials may have the scheme that its receiver expects, or a form of another dialect. */
function schemeIn(authentication: JsonObject | undefined): { scheme: string } | undefined {
  const { schemes } = listed.safeParse(authentication).data ?? {}
  return schemes && { scheme: schemes[0] }
}
