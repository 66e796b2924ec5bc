/**
 * Memory of an agent's process: idle, and after 200,000 tasks. Also the idle memory of each agent of `agents/` that
 * starts without additional settings.
 */
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { AgentUnderTest, callsOf, sendParams } from './support/agent-under-test.ts'
import { LoadGenerator } from './support/load.ts'
import { connections, quick } from './support/measure.ts'
import { checkTarget, expectAtMost, printTable, saveResults } from './support/report.ts'

const idleMs = 10_000
const tasks = quick ? 20_000 : 200_000
const tokens = 100
const megabyte = 1024 * 1024
const growthMost = 1.5

const agentsDir = path.join(import.meta.dirname, '../../agents')
const rssMb: Record<string, number> = {}

// Fills the compile cache first, because stripping types takes memory that later starts do not need.
await (await AgentUnderTest.start())[Symbol.asyncDispose]()
const echo = await echoFigures()
rssMb['echo'] = echo.idleMb
for (const name of (await readdir(agentsDir)).sort()) {
  rssMb[name] = await idleOf(path.join(agentsDir, name)).catch(() => Number.NaN)
}
printTable(
  ['agent', 'RSS MB'],
  [
    ...Object.entries(rssMb).map(([name, mb]) => [
      `${name}, idle for ${idleMs / 1000} s`,
      Number.isNaN(mb) ? 'not started' : mb.toFixed(0),
    ]),
    [`echo, ${idleMs / 1000} s after ${tasks} tasks`, echo.afterMb.toFixed(0)],
    ['echo, peak under load', echo.peakMb.toFixed(0)],
  ],
)
checkTarget('memory of an idle agent', echo.idleMb)
expectAtMost(`after ${tasks} tasks ÷ idle`, echo.afterMb / echo.idleMb, growthMost)
await saveResults('memory', { tasks, settledMs: idleMs, rssMb, echo })

async function echoFigures() {
  await using agent = await AgentUnderTest.start()
  const { server, address } = agent
  await wait(idleMs)
  const idleMb = server.rssBytes / megabyte
  let peakMb = idleMb
  const watching = setInterval(() => {
    peakMb = Math.max(peakMb, server.rssBytes / megabyte)
  }, 250)
  using generator = new LoadGenerator()
  const requests = callsOf(tokens, 'message/send', sendParams())
  const mustHold = '"state":"submitted"'
  const { accepted } = await generator.run({ address, requests, connections, total: tasks, mustHold })
  await agent.waitForCompleted(accepted)
  clearInterval(watching)
  await wait(idleMs)
  return { idleMb, afterMb: server.rssBytes / megabyte, peakMb }
}

async function idleOf(folder: string): Promise<number> {
  await (await AgentUnderTest.start({ folder }))[Symbol.asyncDispose]()
  await using agent = await AgentUnderTest.start({ folder })
  await wait(idleMs)
  return agent.server.rssBytes / megabyte
}
