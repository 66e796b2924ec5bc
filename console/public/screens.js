/**
 * The screens of the console. A path may contain parameters such as `:id`; the first match is shown. Entries with `nav` are in the
 * navigation, in this order, under the heading of their group. `key` is pressed after `g`.
 *
 * @typedef {{
 *   path: string,
 *   load: () => Promise<{ default: import('preact').ComponentType<{ params: Record<string, string> }> }>,
 *   title: string,
 *   operator?: boolean,
 *   data?: string,
 *   nav?: { group: 'Work' | 'Fleet' | 'Access', icon: import('./components/icon.js').IconName, key: string },
 * }} Screen `operator` marks screens that only operators see. `data` is the path of the gateway that is
 *   requested while the modules of the screen are loaded
 */

/** @type {Screen[]} */
export const screens = [
  {
    path: '/console',
    title: 'Overview',
    load: () => import('./screens/overview/overview.js'),
    data: '/operator/overview',
    operator: true,
    nav: { group: 'Work', icon: 'overview', key: 'o' },
  },
  {
    path: '/console/tasks',
    title: 'Tasks',
    load: () => import('./screens/tasks.js'),
    nav: { group: 'Work', icon: 'tasks', key: 't' },
  },
  { path: '/console/tasks/:id', title: 'Task', load: () => import('./screens/task/task.js') },
  {
    path: '/console/decisions',
    title: 'Decisions',
    load: () => import('./screens/decisions/decisions.js'),
    nav: { group: 'Work', icon: 'decisions', key: 'd' },
  },
  {
    path: '/console/decisions/:id',
    title: 'Decision',
    load: () => import('./screens/decisions/decision.js'),
  },
  {
    path: '/console/try',
    title: 'Try it',
    load: () => import('./screens/try/try.js'),
    nav: { group: 'Work', icon: 'chat', key: 'y' },
  },
  {
    path: '/console/waiting',
    title: 'Waiting',
    load: () => import('./screens/waiting/waiting.js'),
    nav: { group: 'Work', icon: 'waiting', key: 'w' },
  },
  {
    path: '/console/agents',
    title: 'Agents',
    load: () => import('./screens/agents/agents.js'),
    operator: true,
    nav: { group: 'Fleet', icon: 'agents', key: 'a' },
  },
  {
    path: '/console/agents/:id',
    title: 'Agent',
    load: () => import('./screens/agents/agent.js'),
    operator: true,
  },
  {
    path: '/console/webhooks',
    title: 'Webhooks',
    load: () => import('./screens/webhooks/webhooks.js'),
    nav: { group: 'Fleet', icon: 'webhooks', key: 'h' },
  },
  {
    path: '/console/webhooks/:agent/:task/:config',
    title: 'Webhook',
    load: () => import('./screens/webhooks/webhook.js'),
  },
  {
    path: '/console/money',
    title: 'Money',
    load: () => import('./screens/money/money.js'),
    nav: { group: 'Fleet', icon: 'money', key: 'm' },
  },
  {
    path: '/console/clients',
    title: 'Clients',
    load: () => import('./screens/access/clients.js'),
    operator: true,
    nav: { group: 'Access', icon: 'clients', key: 'c' },
  },
  {
    path: '/console/clients/:id',
    title: 'Client',
    load: () => import('./screens/access/client.js'),
    operator: true,
  },
  {
    path: '/console/accounts',
    title: 'Accounts',
    load: () => import('./screens/access/accounts.js'),
    operator: true,
    nav: { group: 'Access', icon: 'sessions', key: 's' },
  },
  {
    path: '/console/audit',
    title: 'Audit',
    load: () => import('./screens/access/audit.js'),
    operator: true,
    nav: { group: 'Access', icon: 'audit', key: 'u' },
  },
]

/** The headings of the navigation, in this order. */
const groups = /** @type {const} */ (['Work', 'Fleet', 'Access'])

/**
 * The navigation for a role.
 *
 * @param {boolean} isOperator
 */
export function navigation(isOperator) {
  const shown = screens.filter(({ nav, operator }) => nav !== undefined && (isOperator || operator !== true))
  return groups
    .map((group) => ({ group, screens: shown.filter(({ nav }) => nav?.group === group) }))
    .filter(({ screens }) => screens.length > 0)
}

/**
 * @param {string} path
 * @returns {{ screen: Screen, params: Record<string, string> } | undefined}
 */
export function screenAt(path) {
  for (const screen of screens) {
    const params = paramsOf(screen.path, path)
    if (params !== undefined) return { screen, params }
  }
  return undefined
}

/**
 * @param {string} pattern
 * @param {string} path
 */
function paramsOf(pattern, path) {
  const [wanted, given] = [pattern.split('/'), path.split('/')]
  if (wanted.length !== given.length) return undefined
  /** @type {Record<string, string>} */
  const params = {}
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? ''
    if (part.startsWith(':')) params[part.slice(1)] = decoded(value)
    else if (part !== value) return undefined
  }
  return params
}

/** @param {string} value */
function decoded(value) {
  try {
    return decodeURIComponent(value)
  } catch {
    return value
  }
}
