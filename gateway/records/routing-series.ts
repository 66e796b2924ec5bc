import { Counter, Gauge, Histogram, type Registry as Series } from 'prom-client'

/** Number of agents with separate series. Further agents are counted together as `other`, to bound the number of series. */
const agentsMax = 500
const callBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
const scoreBounds = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1]

type CountName = keyof typeof counters

const counters = {
  answered: { name: 'gateway_calls_total', labels: { outcome: 'answered' } },
  failed: { name: 'gateway_calls_total', labels: { outcome: 'failed' } },
  accepted: { name: 'gateway_decisions_total', labels: { outcome: 'accepted' } },
  rejected: { name: 'gateway_decisions_total', labels: { outcome: 'rejected' } },
  none: { name: 'gateway_decisions_total', labels: { outcome: 'none' } },
  negotiated: { name: 'gateway_decisions_total', labels: { outcome: 'answered' } },
  failovers: { name: 'gateway_failovers_total', labels: {} },
  ejected: { name: 'gateway_ejections_total', labels: {} },
  reinstated: { name: 'gateway_reinstatements_total', labels: {} },
  cost: { name: 'gateway_decision_cost_total', labels: {} },
} as const

const helps = {
  gateway_calls_total:
    'Calls that the gateway forwarded to agents; failed: no response, or a status of 500 or more',
  gateway_decisions_total: 'Routing decisions by outcome and chosen agent; agent is empty if none was chosen',
  gateway_failovers_total:
    'Messages that the agent did not accept and that were offered to another agent, or rejected',
  gateway_ejections_total: 'Ejections of the agent after repeated failures',
  gateway_reinstatements_total: 'Ends of ejections after a successful probe',
  gateway_decision_cost_total:
    'Estimated cost of the messages that the agent accepted, in units of the asset of its price',
}

/** The numbers of one agent. */
class AgentNumbers {
  readonly counts: Partial<Record<CountName, number>> = {}
  readonly calls = new Buckets(callBounds)
  readonly firstEvents = new Buckets(callBounds)

  add(name: CountName, value = 1): void {
    this.counts[name] = (this.counts[name] ?? 0) + value
  }
}

class Buckets {
  readonly bounds: readonly number[]
  readonly counts: number[]
  sum = 0
  count = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = Array.from({ length: bounds.length + 1 }, () => 0)
  }

  add(value: number): void {
    let index = 0
    while (index < this.bounds.length && value > (this.bounds[index] ?? 0)) index += 1
    this.counts[index] = (this.counts[index] ?? 0) + 1
    this.sum += value
    this.count += 1
  }
}

/**
 * The gateway_* series (spec/operations.md#metrics). Like `RequestSeries`, they are counted in plain numbers and built when they
 * are read.
 */
export class RoutingSeries {
  readonly #agents = new Map<string, AgentNumbers>()
  readonly #scores = new Buckets(scoreBounds)

  /** @param agentsByStatus returns the current number of agents by status */
  constructor(series: Series, agentsByStatus: () => ReadonlyMap<string, number>) {
    const agents = this.#agents
    for (const [name, help] of Object.entries(helps)) series.registerMetric(counterOf(name, help, agents))
    series.registerMetric(
      new BucketSeries('gateway_call_duration_seconds', 'Time from a call to the head of the response', () =>
        [...agents].map(([agent, { calls }]) => ({ labels: { agent }, buckets: calls })),
      ),
    )
    series.registerMetric(
      new BucketSeries(
        'gateway_first_event_seconds',
        'Time from a call to the first event of its stream',
        () => [...agents].map(([agent, { firstEvents }]) => ({ labels: { agent }, buckets: firstEvents })),
      ),
    )
    series.registerMetric(
      new BucketSeries('gateway_decision_score', 'Scores of the chosen agents', () => [
        { labels: {}, buckets: this.#scores },
      ]),
    )
    series.registerMetric(agentsGauge(agentsByStatus))
  }

  /** @param agent a slug; empty if there is none */
  add(agent: string, name: CountName, value?: number): void {
    this.#of(agent).add(name, value)
  }

  callAnswered(agent: string, seconds: number, isError: boolean): void {
    const numbers = this.#of(agent)
    numbers.calls.add(seconds)
    numbers.add(isError ? 'failed' : 'answered')
  }

  firstEvent(agent: string, seconds: number): void {
    this.#of(agent).firstEvents.add(seconds)
  }

  score(value: number): void {
    this.#scores.add(value)
  }

  #of(agent: string): AgentNumbers {
    const known = this.#agents.get(agent)
    if (known !== undefined) return known
    const name = this.#agents.size >= agentsMax ? 'other' : agent
    const numbers = this.#agents.get(name) ?? new AgentNumbers()
    this.#agents.set(name, numbers)
    return numbers
  }
}

function counterOf(name: string, help: string, agents: ReadonlyMap<string, AgentNumbers>) {
  const own = Object.entries(counters).filter(([, counter]) => counter.name === name)
  const hasOutcome = own.some(([, { labels }]) => 'outcome' in labels)
  return new Counter({
    name,
    help,
    labelNames: hasOutcome ? ['agent', 'outcome'] : ['agent'],
    registers: [],
    collect() {
      this.reset()
      for (const [agent, { counts }] of agents)
        for (const [key, { labels }] of own) {
          const value = valueOf(counts, key)
          if (value !== undefined) this.inc({ agent, ...labels }, value)
        }
    },
  })
}

const valueOf = (counts: Readonly<Record<string, number | undefined>>, key: string) => counts[key]

function agentsGauge(agentsByStatus: () => ReadonlyMap<string, number>) {
  return new Gauge({
    name: 'gateway_agents',
    help: 'Registered agents by status; quarantined: ejected or quarantined, waiting: not admitted',
    labelNames: ['status'],
    registers: [],
    collect() {
      for (const [status, count] of agentsByStatus()) this.set({ status }, count)
    },
  })
}

type Labeled = { labels: { agent?: string }; buckets: Buckets }

class BucketSeries extends Histogram<'agent'> {
  readonly #about: { name: string; help: string }
  readonly #read: () => Labeled[]

  constructor(name: string, help: string, read: () => Labeled[]) {
    super({ name, help, labelNames: ['agent'], registers: [] })
    this.#about = { name, help }
    this.#read = read
  }

  /** A registry calls this method of a histogram for its values. */
  getForPromString() {
    const { name, help } = this.#about
    const values = this.#read().flatMap(({ labels, buckets: { bounds, counts, sum, count } }) => {
      let below = 0
      const buckets = counts.map((value, index) => {
        below += value
        return {
          metricName: `${name}_bucket`,
          labels: { le: bounds[index] ?? '+Inf', ...labels },
          value: below,
        }
      })
      const ends = [
        { metricName: `${name}_sum`, labels, value: sum },
        { metricName: `${name}_count`, labels, value: count },
      ]
      return count === 0 ? [] : [...buckets, ...ends].map((value) => ({ ...value, sharedLabels: {} }))
    })
    return Promise.resolve({ name, help, type: 'histogram', aggregator: 'sum', values })
  }
}
