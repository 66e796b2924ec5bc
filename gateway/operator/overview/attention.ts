import type { attention } from '@parley/wire/codecs/answers/operator/console'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { z } from 'zod'
import type { AgentEntry, CardChange } from '../../registry/entry.ts'
import { slugOf } from '../../registry/slug.ts'
import type { QueueAnswer } from '../tasks/queue.ts'
import type { CallerView } from '../view.ts'

export type Attention = z.output<typeof attention>
type Kind = Attention['kind']

/** Agents that are named. If more have the same problem, one entry states their number. */
const namedMax = 10
const longQueue = 100
const oldMs = 60_000
const reasonMaxChars = 300

interface Problem {
  kind: Kind
  /** The console's view of all agents with the problem. */
  path: string
  command: string
  /** The command that shows one agent with the problem. */
  commandFor: (slug: string) => string
  has: (entry: AgentEntry) => boolean
  text: (slug: string, entry: AgentEntry) => string
  several: (count: number) => string
  since: (entry: AgentEntry) => string | null
}

/**
 * The operator makes the card of a supervised agent, and the supervisor chooses its address. Its skills may come from an MCP
 * server.
 */
function changesToReview({ origin, cardChanges = [] }: AgentEntry): CardChange[] {
  return cardChanges.filter(({ field }) => origin !== 'supervised' || field.startsWith('skills.'))
}

const problems: Problem[] = [
  {
    kind: 'agent_unreachable',
    path: '/console/agents?status=unreachable',
    command: 'npx parley agents --status unreachable',
    commandFor: (slug) => `npx parley history ${slug}`,
    has: ({ admitted, status }) => admitted && status === 'unreachable',
    text: (slug) => `${slug} does not answer. Check its process and its log.`,
    several: (count) => `${count} agents do not answer. Check their processes and logs.`,
    since: ({ since }) => since,
  },
  {
    kind: 'agent_quarantined',
    path: '/console/agents',
    command: 'npx parley agents',
    commandFor: (slug) => `npx parley history ${slug}`,
    has: ({ quarantine }) => quarantine !== undefined,
    text: (slug, { quarantine }) =>
      quarantine?.by === undefined
        ? `${slug} was ejected after repeated failures and receives no new work until it recovers.`
        : `${slug} is quarantined by an operator. Release it when the cause is gone.`,
    several: (count) => `${count} agents are ejected or quarantined. Release them when the cause is gone.`,
    since: ({ quarantine }) => quarantine?.since ?? null,
  },
  {
    kind: 'agent_not_admitted',
    path: '/console/waiting',
    command: 'npx parley waiting',
    commandFor: () => 'npx parley waiting',
    has: ({ admitted, left }) => !admitted && left === undefined,
    text: (slug) => `${slug} waits for admission. Review its card, then admit or remove it.`,
    several: (count) => `${count} agents wait for admission. Review their cards, then admit or remove them.`,
    since: ({ registeredAt }) => registeredAt,
  },
  {
    kind: 'card_changed',
    path: '/console/agents',
    command: 'npx parley agents',
    commandFor: (slug) => `npx parley history ${slug} --changes`,
    has: (entry) => entry.admitted && changesToReview(entry).length > 0,
    text: (slug) =>
      `The card of ${slug} has changed since its admission. Review the changes and admit it again.`,
    several: (count) =>
      `The cards of ${count} agents have changed since their admission. Review the changes.`,
    since: (entry) => changesToReview(entry).at(-1)?.at ?? null,
  },
]

/** The agents in the registry that need attention. */
export function attentionOf(entries: readonly AgentEntry[]): Attention[] {
  return problems.flatMap(({ kind, path, command, commandFor, has, text, several, since }) => {
    const having = entries.filter(has)
    if (having.length > namedMax)
      return [
        { kind, text: several(having.length), agent: null, since: null, count: having.length, path, command },
      ]
    return having.map((entry): Attention => {
      const { slug } = entry
      const isWaiting = kind === 'agent_not_admitted'
      return {
        kind,
        text: text(slug, entry),
        agent: slug,
        since: since(entry),
        count: 1,
        path: isWaiting ? path : `/console/agents/${slug}`,
        command: commandFor(slug),
      }
    })
  })
}

/** An agent that the supervisor does not start, or with a process that has ended repeatedly since a time. */
export interface NotRunningAgent {
  name: string
  reason: string
  since?: number
}

/** The agents that do not start. The last output of a process may contain texts of callers. */
export function startAttention(
  notRunning: () => NotRunningAgent[],
): (view: CallerView) => Promise<Attention[]> {
  return async ({ texts }) => {
    const agents = notRunning()
    const of = { kind: 'agent_not_started', path: '/console/agents', command: 'npx parley overview' } as const
    if (agents.length > namedMax) {
      const text = `${agents.length} agents do not start or end repeatedly. The log of the gateway has the reasons.`
      return [{ ...of, text, agent: null, since: null, count: agents.length }]
    }
    return agents.map(({ name, reason, since }): Attention => {
      const why = cleanLine(reason, reasonMaxChars)
      if (since === undefined && reason.startsWith('needs ')) {
        const text = `${name} is not configured: it ${why}. To use it, set them and restart the gateway.`
        return {
          ...of,
          kind: 'agent_not_configured',
          text,
          agent: slugOf(name) ?? null,
          since: null,
          count: 1,
        }
      }
      const text =
        since === undefined
          ? `${name} is not started: ${why}. Correct its settings, then restart the gateway.`
          : `The process of ${name} ends repeatedly${texts ? `: ${why}` : ''}. Check its log.`
      const at = since === undefined ? null : new Date(since).toISOString()
      return { ...of, text, agent: slugOf(name) ?? null, since: at, count: 1 }
    })
  }
}

/** The queues of agents that need attention. */
export function queueAttention({ agents }: QueueAnswer, now: number): Attention[] {
  const long = agents
    .filter(
      ({ queued, oldest_queued_at: oldest }) =>
        queued >= longQueue || (oldest !== null && now - Date.parse(oldest) > oldMs),
    )
    .slice(0, namedMax)
    .map(
      ({ agent, queued, oldest_queued_at: since }): Attention => ({
        kind: 'queue_long',
        text: `${queued} tasks are queued at ${agent}. Start more processes, or limit the callers with the most tasks.`,
        agent,
        since,
        count: queued,
        path: `/console/tasks?agent=${agent}&state=submitted`,
        command: `npx parley tasks --agent ${agent} --state submitted`,
      }),
    )
  const waiting = agents.reduce((sum, one) => sum + one.waiting, 0)
  if (waiting === 0) return long
  const text =
    waiting === 1
      ? '1 task waits for a person or a payment.'
      : `${waiting} tasks wait for a person or a payment.`
  const command = 'npx parley waiting'
  return [
    ...long,
    {
      kind: 'task_waiting',
      text,
      agent: null,
      since: null,
      count: waiting,
      path: '/console/waiting',
      command,
    },
  ]
}
