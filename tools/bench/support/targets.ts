/** A bound for one figure of a benchmark. A measured value must be at least `least` or at most `most`. */
export type Target = {
  /** The benchmark that measures it. */
  benchmark: string
  unit?: string
  /** The value to reach after the bound is kept. */
  aim?: number
} & ({ least: number; most?: never } | { most: number; least?: never })

const send = { benchmark: 'message-send' }
const throughput = { ...send, least: 1.3, aim: 1.6 }
const latency = { ...send, most: 1 }
const negotiation = { benchmark: 'negotiation', unit: ' ms', aim: 2 }
const get = { benchmark: 'tasks-get', aim: 0.6 }

/** The bounds in the order of the summary (`npm run bench -- --summary`), by the description of the figure. */
export const targets = {
  'message/send ÷ @a2a-js/sdk, requests/s, free cores, one token': throughput,
  'message/send ÷ @a2a-js/sdk, requests/s, free cores, 100 tokens': throughput,
  'message/send ÷ @a2a-js/sdk, p99, free cores, one token': latency,
  'message/send ÷ @a2a-js/sdk, p99, free cores, 100 tokens': latency,
  'message/send ÷ @a2a-js/sdk, CPU, one core, one token': { ...send, most: 0.9, aim: 0.7 },
  'message/send ÷ @a2a-js/sdk, CPU, one core, 100 tokens': { ...send, most: 1, aim: 0.7 },
  'tasks/get ÷ bare Fastify route, requests/s, one token': { ...get, least: 0.45 },
  'tasks/get ÷ bare Fastify route, requests/s, 100 tokens': { ...get, least: 0.4 },
  '/agents/{slug}/ ÷ bare undici forwarder, CPU': { benchmark: 'gateway-hop', most: 1.2, aim: 1 },
  'POST / with message/send, CPU of the gateway': {
    benchmark: 'gateway-hop',
    most: 180,
    aim: 120,
    unit: ' µs',
  },
  // The bound above on a machine on which the bare forwarder takes 47 µs.
  'POST / with message/send ÷ bare undici forwarder, CPU': {
    benchmark: 'gateway-hop',
    most: 3.8,
    aim: 2.6,
  },
  'tasks per second on MongoDB and Redis, one agent process': { benchmark: 'scale', least: 800, aim: 1200 },
  'POST /agent/negotiation, 10,000 agents, p99': { ...negotiation, most: 4 },
  'POST /agent/negotiation, 2,000 of 10,000 agents with feedback, p99': { ...negotiation, most: 5 },
  'life of a task in the embedded store ÷ raw SQLite, CPU': { benchmark: 'store', most: 2, aim: 1.5 },
  'memory of an idle agent': { benchmark: 'memory', most: 105, aim: 95, unit: ' MB' },
  'npm start to ready': { benchmark: 'start', most: 1.5, unit: ' s' },
  'parley --help, wall clock': { benchmark: 'cli', most: 250, unit: ' ms' },
} satisfies Record<string, Target>

export type TargetName = keyof typeof targets
