import { type Deprecation, type DeprecationMark, deprecatedFields } from '@parley/wire/model/deprecation'

/**
 * Manifest names that are accepted in place of ours, each with the path of ours (spec/webhooks.md#capability).
 * They are deprecated: one spelling per setting.
 */
export const manifestAliases: Readonly<Record<string, DeprecationMark>> = {
  push_notifications: { since: '2026-11-22', use: 'capabilities.pushNotifications' },
  'capabilities.push_notifications': { since: '2026-11-22', use: 'capabilities.pushNotifications' },
  global_webhook_url: { since: '2026-11-22', use: 'globalWebhook.url' },
  global_webhook_token: { since: '2026-11-22', use: 'globalWebhook.token' },
}

/**
 * The definition with the names of ours alone, and which others it had.
 * @throws Error when it has a setting in both spellings with different values
 */
export function withOurNames<T extends object>(given: T): { definition: T; deprecations: Deprecation[] } {
  const deprecations = deprecatedFields(manifestAliases, given as Record<string, unknown>)
  if (deprecations.length === 0) return { definition: given, deprecations }
  const definition = cloneOf(given as Record<string, unknown>)
  for (const { name, use } of deprecations) move(definition, name, use)
  if (
    valueAt(definition, 'globalWebhook.token') !== undefined &&
    valueAt(definition, 'globalWebhook.url') === undefined
  )
    throw new Error('defineAgent: global_webhook_token is the token of global_webhook_url, which is missing.')
  return { definition: definition as T, deprecations }
}

/** Copies only the objects that are changed: the others hold functions and schemas. */
function cloneOf(given: Record<string, unknown>): Record<string, unknown> {
  const copy = { ...given }
  for (const key of ['capabilities', 'globalWebhook']) {
    if (typeof copy[key] === 'object') copy[key] = { ...copy[key] }
  }
  return copy
}

function move(definition: Record<string, unknown>, from: string, to: string): void {
  const value = valueAt(definition, from)
  const present = valueAt(definition, to)
  if (present !== undefined && present !== value)
    throw new Error(`defineAgent: ${from} and ${to} differ. Keep ${to} alone.`)
  const [key = '', name = ''] = to.split('.')
  definition[key] ??= {}
  ;(definition[key] as Record<string, unknown>)[name] = value
}

function valueAt(definition: Record<string, unknown>, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], definition)
}
