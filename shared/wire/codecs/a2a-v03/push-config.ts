import { z } from 'zod'
import type { PushConfigInput, PushConfigState } from '../../model/call.ts'
import type { Ids } from '../../model/ids.ts'
import type { Unserialized } from '../parley/shapes.ts'
import { camelObject } from '../parley/spelling.ts'
import { filled, optionalId } from './message.ts'
import { dialectName } from './name.ts'
import type { WirePushConfig, WireTaskPushConfig } from './shapes.ts'

/** Characters that an `Authorization` header may contain. */
const headerText = /^[\x20-\x7e]*$/
const schemeName = /^[\w!#$%&'*+.^`|~-]+$/

/** A webhook as a caller registers it (spec/a2a.md#03-webhooks). URL and token are checked at registration. */
export const pushNotificationConfig = camelObject({
  id: optionalId,
  url: z.string().min(1),
  token: filled(z.string()),
  authentication: camelObject({
    schemes: z.array(z.string().min(1).max(256)).max(20),
    credentials: filled(z.string().max(4096).regex(headerText, 'must consist of printable ASCII characters')),
  })
    .refine(
      ({ schemes, credentials }) => credentials === undefined || schemes.some((one) => schemeName.test(one)),
      {
        path: ['schemes'],
        message: 'must have the name of an HTTP authentication scheme for the credentials',
      },
    )
    .optional(),
})

/**
 * Without an ID, the webhook has the ID of its task, as in the SDKs.
 * @param taskId undefined for the webhook of a new task, for which the server then makes an ID
 */
export function pushConfigIn(
  { id: given, url, token, authentication }: z.output<typeof pushNotificationConfig>,
  taskId: string | undefined,
  ids: Ids,
): PushConfigInput {
  const { id, name } = given === undefined ? { id: taskId } : ids(given)
  const schemes = authentication?.schemes ?? []
  const scheme = schemes.find((one) => schemeName.test(one))
  const credentials = authentication?.credentials
  return {
    id,
    name,
    url,
    token,
    authentication: authentication && { schemes },
    credentials: scheme === undefined || credentials === undefined ? undefined : { scheme, credentials },
    dialect: dialectName,
  }
}

/** Writes a webhook for the task's owner only, because it contains the token and the credentials. */
export function taskPushConfigOut({ task, ...config }: PushConfigState): Unserialized<WireTaskPushConfig> {
  return { taskId: task.id, pushNotificationConfig: pushConfigOut(config) }
}

export function pushConfigOut(config: Omit<PushConfigInput, 'dialect'>): Unserialized<WirePushConfig> {
  const { id, name, url, token } = config
  return { id: name ?? id, url, token, authentication: authenticationOut(config) }
}

const listed = z.object({ schemes: z.array(z.string()) })

/** Other dialects state the authentication in another form, which clients of this version cannot read. */
function authenticationOut({
  authentication,
  credentials,
}: Pick<PushConfigInput, 'authentication' | 'credentials'>): Unserialized<WirePushConfig['authentication']> {
  const schemes = listed.safeParse(authentication).data?.schemes ?? (credentials && [credentials.scheme])
  return schemes && { schemes, credentials: credentials?.credentials }
}
