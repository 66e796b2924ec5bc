import { setTimeout as wait } from 'node:timers/promises'
import type { ServerProcess } from '../servers/server-process.ts'
import type { Load, LoadGenerator } from './load.ts'
import { connections, median, quick } from './measure.ts'

/** A running server and the requests that it receives. */
export interface Side {
  server: Pick<ServerProcess, 'address' | 'cpuMicros'>
  load: Pick<Load, 'requests' | 'mustHold'>
}

export interface PairedFigures {
  /** Median of the ratios, first side to second. */
  ratio: number
  ratios: number[]
  /** CPU time per request of the two sides, in microseconds. */
  micros: [number, number]
}

/** V8 compiles the last hot functions of a gateway after some 50,000 requests. */
const warmUpSeconds = quick ? 3 : 8
const defaultPairs = quick ? 7 : 25
const seconds = 1

/**
 * Compares the CPU time per request of two running servers. They are measured alternately for a second each, so that
 * the state of the machine and of the compiled code is the same for both, and the median of the ratios is repeatable
 * on a machine that other programs use as well.
 */
export async function inPairs(
  generator: LoadGenerator,
  one: Side,
  other: Side,
  { pairs = defaultPairs } = {},
): Promise<PairedFigures> {
  const send = ({ server, load }: Side, extent: Pick<Load, 'seconds'>) =>
    generator.run({ ...load, ...extent, address: server.address, connections })
  const microsOf = async (side: Side) => {
    await wait(50)
    const before = side.server.cpuMicros
    const { accepted } = await send(side, { seconds })
    return (side.server.cpuMicros - before) / accepted
  }
  await send(one, { seconds: warmUpSeconds })
  await send(other, { seconds: warmUpSeconds })
  const ones: number[] = []
  const others: number[] = []
  for (let pair = 0; pair < pairs; pair += 1) {
    // Each side is first in every second pair.
    if (pair % 2 === 0) ones.push(await microsOf(one))
    others.push(await microsOf(other))
    if (pair % 2 === 1) ones.push(await microsOf(one))
  }
  const ratios = ones.map((value, pair) => value / (others[pair] ?? Number.NaN))
  return { ratio: median(ratios), ratios, micros: [median(ones), median(others)] }
}
