/**
 * Where the CPU time of `message/send` goes, from acceptance to `completed`, with 100 tokens and one core for the agent: profiles an echo
 * agent under load and adds up the samples by group. The profiles remain in `bench/results/profile/`, for the flame graph
 * of Chrome's developer tools or of speedscope.
 */
import { globSync, readFileSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import path from 'node:path'
import { AgentUnderTest, callsOf, sendParams } from './support/agent-under-test.ts'
import { LoadGenerator } from './support/load.ts'
import { type Figures, measure } from './support/measure.ts'
import { saveResults } from './support/report.ts'

/** The part of a `.cpuprofile` file that is read. Times in microseconds. */
interface Profile {
  nodes: { id: number; callFrame: { functionName: string; url: string } }[]
  samples: number[]
  timeDeltas: number[]
}

/** The group of a function, by the first pattern that its file or, without a file, its name matches. */
const groups: [group: string, pattern: RegExp][] = [
  ['store', /shared\/(?:engine\/store|kit\/database)\/|node:sqlite|node:zlib|fdatasync/],
  ['signatures', /node:internal\/crypto\/(?:sig|keys)|shared\/kit\/did\//],
  ['authentication', /shared\/kit\/auth\//],
  ['JSON and schemas', /shared\/wire\/|node_modules\/zod\//],
  ['engine and handler', /shared\/(?:engine|agent)\/|bench\/support\/echo/],
  [
    'logs and metrics',
    /node_modules\/(?:pino|prom-client|sonic-boom|thread-stream)|shared\/kit\/(?:process|telemetry)\//,
  ],
  [
    'HTTP',
    /node:(?:_http|net|events|internal\/(?:streams?|http|timers))|node_modules\/(?:fastify|find-my-way|@fastify|avvio)|shared\/kit\/http\/|^write|^shutdown|^readS/,
  ],
  ['garbage collector', /^\(garbage collector\)$/],
]
const other = 'other'

const folder = path.join(import.meta.dirname, '../../bench/results/profile')

/** The warm-up comes before this part of the samples. */
const measuredFrom = 0.6

function addUp(profile: Profile, sums: Map<string, number>): void {
  const groupOf = new Map(profile.nodes.map(({ id, callFrame }) => [id, groupOfCall(callFrame)]))
  for (
    let index = Math.floor(profile.samples.length * measuredFrom);
    index < profile.samples.length;
    index += 1
  ) {
    const group = groupOf.get(profile.samples[index] ?? -1)
    if (group !== undefined) sums.set(group, (sums.get(group) ?? 0) + (profile.timeDeltas[index] ?? 0))
  }
}

/** Returns undefined if the thread waits. */
function groupOfCall({ functionName, url }: { functionName: string; url: string }): string | undefined {
  if (functionName === '(idle)') return undefined
  return groups.find(([, pattern]) => pattern.test(url === '' ? functionName : url))?.[0] ?? other
}

async function profiled(): Promise<Figures> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true })
  using generator = new LoadGenerator()
  await using agent = await AgentUnderTest.start({
    nodeFlags: ['--cpu-prof', '--cpu-prof-dir', folder, '--cpu-prof-interval', '500'],
  })
  const load = { requests: callsOf(100, 'message/send', sendParams()), mustHold: '"state":"submitted"' }
  const { figures, accepted } = await measure(generator, agent.server, load)
  await agent.waitForCompleted(accepted)
  return figures
}

const { cpuMicrosPerRequest } = await profiled()
const sums = new Map<string, number>()
for (const file of globSync('*.cpuprofile', { cwd: folder }))
  addUp(JSON.parse(readFileSync(path.join(folder, file), 'utf8')) as Profile, sums)
const total = [...sums.values()].reduce((sum, micros) => sum + micros, 0)
const table = Object.fromEntries(
  [...sums]
    .sort((a, b) => b[1] - a[1])
    .map(([group, micros]) => [
      group,
      {
        '%': Math.round((1000 * micros) / total) / 10,
        'µs/request': Math.round((cpuMicrosPerRequest * micros) / total),
      },
    ]),
)
console.table(table)
console.log(`${Math.round(cpuMicrosPerRequest)} µs of CPU per request, with the profiler`)
await saveResults('profile', { cpuMicrosPerRequest, groups: table })
