import { z } from 'zod'
import type { PushConfigState } from '../../model/call.ts'
import { jsonObject, uuid } from './message.ts'
import type { SendConfiguration, Unserialized, WirePushConfig, WireTaskPushConfig } from './shapes.ts'
import { wireObject } from './spelling.ts'

const word = z.string().min(1).max(256)
const text = z.string().max(4096).optional()

/** An OpenAPI security scheme, as in agent cards. The fields that a type requires are checked; others stay unchanged. */
const securityScheme = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('http'), scheme: word, bearerFormat: text, description: text }),
  z.looseObject({
    type: z.literal('apiKey'),
    name: word,
    in: z.enum(['query', 'header', 'cookie']),
    description: text,
  }),
  z.looseObject({ type: z.literal('oauth2'), flows: jsonObject, description: text }),
  z.looseObject({ type: z.literal('openIdConnect'), openIdConnectUrl: word, description: text }),
  z.looseObject({ type: z.literal('mutualTLS'), description: text }),
])

/** The PushNotificationAuthenticationInfo of A2A, which A2A clients send in the same field. */
const authenticationInfo = z.looseObject({ schemes: z.array(word).min(1).max(20), credentials: text })

const authenticationMaxChars = 8192

const authentication = jsonObject.superRefine((given, context) => {
  const isInfo = given['type'] === undefined && given['schemes'] !== undefined
  const parsed = (isInfo ? authenticationInfo : securityScheme).safeParse(given)
  for (const { path, message } of parsed.error?.issues ?? [])
    context.addIssue({ code: 'custom', path, message })
  if (parsed.success && JSON.stringify(given).length > authenticationMaxChars)
    context.addIssue({
      code: 'custom',
      message: `must not be longer than ${authenticationMaxChars} characters`,
    })
})

/**
 * A webhook as a caller registers it (spec/webhooks.md#pushnotificationconfig). URL and token are checked at registration.
 * `authentication` is validated, stored and returned, but does not affect the delivery.
 */
export const pushNotificationConfig = wireObject({
  id: uuid,
  url: z.string().min(1),
  token: z.string().optional(),
  authentication: authentication.optional(),
})

/** Writes a webhook for the task's owner only, because it contains the token and the state of its deliveries. */
export function pushConfigOut({
  task,
  id,
  url,
  token,
  authentication: scheme,
  longRunning,
  health,
}: PushConfigState): Unserialized<WireTaskPushConfig> {
  return {
    id: task.id,
    push_notification_config: { id, url, token, authentication: scheme },
    long_running: longRunning,
    attempts: health.attempts,
    delivered: health.delivered,
    dropped: health.dropped,
    last_status: health.lastStatus ?? null,
    last_error: health.lastError ?? null,
    last_attempt_at: health.lastAttemptAt ?? null,
  }
}

/** The field names as they appear in text for people and in error issues. */
export const fieldNames = { pushConfig: 'push_notification_config' } as const

/** The `configuration` of a message that registers a webhook for its task's events. */
export function webhookConfiguration(config: WirePushConfig): SendConfiguration {
  return { push_notification_config: config }
}
