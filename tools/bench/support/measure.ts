import { setTimeout as wait } from 'node:timers/promises'
import type { ServerProcess } from '../servers/server-process.ts'
import type { Load, LoadGenerator } from './load.ts'
import { cores, coreTimes, idleShare } from './machine.ts'

/** `BENCH_QUICK=yes` shortens runs during development, with less precise figures. */
export const quick = process.env['BENCH_QUICK'] === 'yes'

/** Number of requests that warm up the compiler. */
const warmUpRequests = quick ? 6000 : 15_000
const measuredSeconds = quick ? 2 : 5
export const rounds = quick ? 1 : 5
export const connections = 32

/** Results of one run of the load. */
export interface Figures {
  requestsPerSecond: number
  cpuMicrosPerRequest: number
  p50Ms: number
  p99Ms: number
  /** Fraction of a core that the load generator used. */
  generatorUse: number
  /** CPU time of the server and the load generator. */
  totalCpuMicrosPerRequest: number
  /** Fraction of the generator's core that no program used. With free cores: of all cores. */
  loadIdle: number
  /** Fraction of the server's core that other programs used. 0 with free cores, where it cannot be measured. */
  othersOnServerCore: number
}

/**
 * Warms the server up, then measures it. `accepted` includes the warm-up.
 * @param load.warmUp Default 15,000 requests.
 * @param load.connections of the measured requests. Default 32, with which the warm-up always runs.
 */
export async function measure(
  generator: LoadGenerator,
  server: Pick<ServerProcess, 'address' | 'cpuMicros'>,
  load: Pick<Load, 'requests' | 'mustHold'> & Partial<Pick<Load, 'connections'>> & { warmUp?: number },
): Promise<{ figures: Figures; accepted: number }> {
  const { warmUp: total = warmUpRequests, connections: measured = connections, ...sent } = load
  const whole = { ...sent, address: server.address }
  const warmUp = await generator.run({ ...whole, connections, total })
  await wait(200)
  const free = generator.placement === 'free'
  const loadCore = free ? 'all' : cores.load
  const [cpu, own, theirs] = [server.cpuMicros, coreTimes(cores.server), coreTimes(loadCore)]
  const result = await generator.run({ ...whole, connections: measured, seconds: measuredSeconds })
  const cpuMicros = server.cpuMicros - cpu
  const used = cpuMicros / (result.seconds * 1_000_000)
  const generatorMicros = result.generatorUse * result.seconds * 1_000_000
  return {
    accepted: warmUp.accepted + result.accepted,
    figures: {
      requestsPerSecond: result.accepted / result.seconds,
      cpuMicrosPerRequest: cpuMicros / result.accepted,
      p50Ms: result.p50Ms,
      p99Ms: result.p99Ms,
      generatorUse: result.generatorUse,
      totalCpuMicrosPerRequest: (cpuMicros + generatorMicros) / result.accepted,
      loadIdle: idleShare(theirs, coreTimes(loadCore)),
      othersOnServerCore: free ? 0 : Math.max(0, 1 - idleShare(own, coreTimes(cores.server)) - used),
    },
  }
}

/** Computes the median of each figure. */
export function medians(all: Figures[]): Figures {
  const of = (pick: (figures: Figures) => number) => median(all.map(pick))
  return {
    requestsPerSecond: of((one) => one.requestsPerSecond),
    cpuMicrosPerRequest: of((one) => one.cpuMicrosPerRequest),
    p50Ms: of((one) => one.p50Ms),
    p99Ms: of((one) => one.p99Ms),
    generatorUse: of((one) => one.generatorUse),
    totalCpuMicrosPerRequest: of((one) => one.totalCpuMicrosPerRequest),
    loadIdle: of((one) => one.loadIdle),
    othersOnServerCore: of((one) => one.othersOnServerCore),
  }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}
