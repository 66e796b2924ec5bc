import { ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { RestBinding, RestRequest, RestRoute } from '../codec.ts'
import { snakeOf } from '../parley/spelling.ts'
import { writeRestError } from './errors.ts'
import { openRestStream } from './frames.ts'
import { basePath, mediaType } from './name.ts'

/** The ID of a task before a verb, as in `/tasks/{id}:cancel`. */
const idBeforeVerb = ':id(^[^:]+)'

type Pattern = Pick<RestRoute, 'verb' | 'path' | 'operation'>

/** The annotations `google.api.http` of the service's methods. Fastify writes a literal colon as two. */
const patterns: readonly Pattern[] = [
  { verb: 'POST', path: '/message::send', operation: 'sendMessage' },
  { verb: 'POST', path: '/message::stream', operation: 'streamMessage' },
  { verb: 'GET', path: '/tasks', operation: 'listTasks' },
  { verb: 'GET', path: '/tasks/:id', operation: 'getTask' },
  { verb: 'POST', path: `/tasks/${idBeforeVerb}::cancel`, operation: 'cancelTask' },
  { verb: 'GET', path: `/tasks/${idBeforeVerb}::subscribe`, operation: 'resubscribe' },
  // The text of the specification has POST, and its annotations have GET.
  { verb: 'POST', path: `/tasks/${idBeforeVerb}::subscribe`, operation: 'resubscribe' },
  { verb: 'POST', path: '/tasks/:taskId/pushNotificationConfigs', operation: 'setPushConfig' },
  { verb: 'GET', path: '/tasks/:taskId/pushNotificationConfigs', operation: 'listPushConfigs' },
  // Some SDKs do not encode a slash in the ID.
  { verb: 'GET', path: '/tasks/:taskId/pushNotificationConfigs/*', operation: 'getPushConfig' },
  { verb: 'DELETE', path: '/tasks/:taskId/pushNotificationConfigs/*', operation: 'deletePushConfig' },
  { verb: 'GET', path: '/extendedAgentCard', operation: 'getExtendedCard' },
]

/** At the root there is no path with a tenant, because its first segment could be that of another route. */
const prefixes = ['', basePath, `${basePath}/:tenant`]

export const rest: Omit<RestBinding, 'covers'> = {
  routes: prefixes.flatMap((prefix) =>
    patterns.map((pattern) => ({ ...pattern, path: prefix + pattern.path, params: paramsOf })),
  ),
  mediaType,
  writeError: writeRestError,
  openStream: openRestStream,
}

/** A field in the path takes precedence over the same field in the body or the query. */
function paramsOf({ path, query, body }: RestRequest): Record<string, unknown> {
  if (body !== undefined && body !== null && !isObject(body))
    throw new ParleyError('InvalidParams', { message: 'The body must be an object' })
  const params: Record<string, unknown> = isObject(body) ? { ...body } : fieldsOf(query)
  for (const [parameter, value] of Object.entries(path)) {
    const name = parameter === '*' ? 'id' : parameter
    delete params[snakeOf(name)]
    params[name] = value
  }
  return params
}

/** The fields that are not strings, apart from int32, which ProtoJSON also reads from a string. */
const booleans = new Set(['includeArtifacts', 'include_artifacts'])
const enums = new Set(['status'])

function fieldsOf(query: RestRequest['query']): Record<string, unknown> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, valueOf(name, value)]))
}

function valueOf(name: string, value: unknown): unknown {
  if (booleans.has(name) && (value === 'true' || value === 'false')) return value === 'true'
  if (enums.has(name) && typeof value === 'string' && /^\d{1,3}$/.test(value)) return Number(value)
  return value
}
