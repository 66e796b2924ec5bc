import { isObject } from '@parley/wire/jsonrpc/envelope'
import { type Deprecation, type DeprecationMark, deprecatedFields } from '@parley/wire/model/deprecation'

/** Deprecated names in agent definitions (spec/webhooks.md#capability), each with the path of the current name. */
export const manifestAliases: Readonly<Record<string, DeprecationMark>> = {
  push_notifications: { since: '2026-11-22', use: 'capabilities.pushNotifications' },
  'capabilities.push_notifications': { since: '2026-11-22', use: 'capabilities.pushNotifications' },
  global_webhook_url: { since: '2026-11-22', use: 'globalWebhook.url' },
  global_webhook_token: { since: '2026-11-22', use: 'globalWebhook.token' },
}

type Fields = Record<string, unknown>

/**
 * Returns the definition with current names, and the deprecated names that it used.
 * @throws Error when the definition has a setting under both names with different values
 */
export function withCurrentNames(given: object): { definition: Fields; deprecations: Deprecation[] } {
  const definition: Fields = { ...given }
  const deprecations = deprecatedFields(manifestAliases, definition)
  if (deprecations.length === 0) return { definition, deprecations }
  for (const { name, use } of deprecations) move(definition, name, use)
  if (
    valueAt(definition, 'globalWebhook.token') !== undefined &&
    valueAt(definition, 'globalWebhook.url') === undefined
  )
    throw new Error('defineAgent: global_webhook_token is the token of global_webhook_url, which is missing.')
  return { definition, deprecations }
}

/** Moves a field to its current name. Objects are copied before they are changed. */
function move(definition: Fields, from: string, to: string): void {
  const value = valueAt(definition, from)
  const present = valueAt(definition, to)
  if (present !== undefined && present !== value)
    throw new Error(`defineAgent: ${from} and ${to} differ. Keep only ${to}.`)
  const [key = '', name = ''] = to.split('.')
  const parent = definition[key]
  definition[key] = { ...(isObject(parent) && parent), [name]: value }
}

function valueAt(definition: Fields, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), definition)
}
