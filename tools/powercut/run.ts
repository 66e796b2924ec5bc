import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import type { Store, TaskRecord } from '@parley/engine/store/store'
import { isTerminal } from '@parley/wire/model/task'
import { KillableAgent } from '../testing/killable-agent.ts'
import type { DiskNames } from './disk.ts'
import { type Acknowledgement, agentSource, client, textOf } from './load.ts'
import { momentsIn, recorded, type SystemCall } from './recording.ts'
import { Replay } from './replay.ts'
import { damageOf } from './sqlite/integrity.ts'

export interface PowercutOptions {
  tasks: number
  clients: number
  /** Number of moments at which the power is cut. Each is checked with every kind of loss. */
  cuts: number
  /** Whether the agent runs without waiting for the disk (`synchronous = OFF`), so that it must lose tasks. */
  unsafe: boolean
  say: (text: string) => void
}

export interface PowercutFigures {
  /** Number of folders that were built and checked. */
  cuts: number
  /** Number of responses of the run that acknowledge a state of a task. */
  acknowledgements: number
  /** Number of acknowledged states that were checked in all folders. */
  checked: number
  /** Number of those that the store did not have. */
  lost: number
  /** Number of folders in which the store did not open or was damaged. */
  damaged: number
  syncs: number
  writes: number
}

/** The share of unsynced changes that survives, and the bytes in which a write is torn. */
const losses: { name: string; share: number; sectorBytes: number }[] = [
  { name: 'all unsynced writes are lost', share: 0, sectorBytes: 4096 },
  { name: 'half of the 4 KiB blocks survive', share: 0.5, sectorBytes: 4096 },
  { name: 'half of the 512 B sectors survive', share: 0.5, sectorBytes: 512 },
  { name: 'all unsynced writes survive', share: 1, sectorBytes: 4096 },
]

const unsafeSqlite = new URL('sqlite/unsafe.ts', import.meta.url).href

/**
 * Records the system calls of an agent under load, and cuts the power in the recording: builds the folder of the agent as the disk would
 * have it, opens the store in it, and looks for every state of a task that a client had received.
 * @param strace path of the program
 */
export async function powercutRun(strace: string, options: PowercutOptions): Promise<PowercutFigures> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-powercut-'))
  try {
    const { log, dataDir, acknowledged } = await record(strace, folder, options)
    options.say(`recorded: ${acknowledged.size} acknowledgements`)
    return await cutEverywhere({ log, dataDir, acknowledged, folder }, options)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Recording {
  folder: string
  log: string
  dataDir: string
  acknowledged: Map<string, Acknowledgement>
}

async function record(
  strace: string,
  folder: string,
  options: PowercutOptions,
): Promise<Omit<Recording, 'folder'>> {
  const log = path.join(folder, 'calls')
  const env = {
    // File operations through io_uring cannot be recorded.
    UV_USE_IO_URING: '0',
    ...(options.unsafe && { NODE_OPTIONS: `--import ${unsafeSqlite}` }),
  }
  await using agent = await KillableAgent.start(agentSource, env, recorded(strace, log))
  const acknowledged = new Map<string, Acknowledgement>()
  const left = { tasks: options.tasks }
  const clients = Array.from({ length: options.clients }, (_, number) => {
    const token = agent.identityProvider.issue(`did:parley:powercut:agent:${number}`)
    return client({ url: agent.url, token }, acknowledged, left)
  })
  await Promise.all(clients)
  const code = await agent.stop()
  if (code !== 0) throw new Error(`the agent exited with ${code}: ${agent.output}`)
  // strace writes its last lines after the agent has exited.
  await pause(500)
  return { log, dataDir: agent.dataDir, acknowledged }
}

async function cutEverywhere(recording: Recording, options: PowercutOptions): Promise<PowercutFigures> {
  const { log, dataDir, acknowledged, folder } = recording
  const plan = await planOf(recording, options.cuts)
  // The folder that contains the agent's own folder exists from the start.
  const replay = new Replay(path.dirname(dataDir))
  /** The newest acknowledgement of each task. */
  const newest = new Map<string, Acknowledgement>()
  const sum = { cuts: 0, checked: 0, lost: 0, damaged: 0 }
  let index = 0
  for await (const moment of momentsIn(log)) {
    if (moment.phase === 'begins')
      for (const one of sentBy(moment.call, replay, acknowledged)) newest.set(one.taskId, one)
    replay.next(moment)
    if (plan.cuts.has(index)) {
      for (const loss of losses) {
        const target = path.join(folder, 'cut')
        const found = await cut(
          replay.names,
          target,
          path.relative(path.dirname(dataDir), dataDir),
          newest,
          loss,
        )
        sum.cuts += 1
        sum.checked += newest.size
        sum.lost += found.lost
        if (found.damage !== undefined) sum.damaged += 1
        if (found.damage !== undefined || found.lost > 0)
          options.say(
            `cut ${index}, ${loss.name}: lost ${found.lost}${found.damage === undefined ? '' : `; ${found.damage}`}`,
          )
      }
    }
    index += 1
  }
  return { ...sum, acknowledgements: acknowledged.size, syncs: plan.syncs, writes: plan.writes }
}

/** Chooses the moments: after acknowledgements, during checkpoints, and anywhere after the start. */
async function planOf({ log, dataDir, acknowledged }: Recording, cuts: number) {
  const replay = new Replay(path.dirname(dataDir))
  const kinds = { acknowledged: [] as number[], checkpoint: [] as number[], any: [] as number[] }
  let [index, syncs, writes] = [0, 0, 0]
  for await (const moment of momentsIn(log)) {
    const { call, phase } = moment
    const isFile = replay.isFile(call)
    if (phase === 'begins' && sentBy(call, replay, acknowledged).length > 0) kinds.acknowledged.push(index)
    if (kinds.acknowledged.length > 0 && isFile) {
      kinds.any.push(index)
      if (replay.concernsFileWithout(call, '-wal')) kinds.checkpoint.push(index)
    }
    if (phase === 'ends' && isFile && call.name.endsWith('sync')) syncs += 1
    if (phase === 'ends' && isFile && /write/.test(call.name)) writes += 1
    replay.next(moment)
    index += 1
  }
  const each = Math.ceil(cuts / 3)
  const chosen = Object.values(kinds).flatMap((indexes) => spread(indexes, each))
  return { cuts: new Set(chosen), syncs, writes }
}

/** Members at equal distances, with the last one. */
function spread(indexes: number[], count: number): number[] {
  const step = indexes.length / Math.min(count, indexes.length)
  return Array.from({ length: Math.min(count, indexes.length) }, (_, number) => {
    return indexes[Math.ceil((number + 1) * step) - 1] as number
  })
}

/** The acknowledgements that a call sends to clients. */
function sentBy(call: SystemCall, replay: Replay, all: Map<string, Acknowledgement>): Acknowledgement[] {
  if (!/^(write|send)/.test(call.name) || replay.isFile(call)) return []
  const sent = Buffer.concat(call.strings).toString('latin1')
  return [...sent.matchAll(/"(answer-[0-9a-f-]{36})"/g)].flatMap(([, id = '']) => all.get(id) ?? [])
}

/** Builds the folder and checks it. */
async function cut(
  names: DiskNames,
  target: string,
  inside: string,
  newest: Map<string, Acknowledgement>,
  { share, sectorBytes }: { share: number; sectorBytes: number },
): Promise<{ lost: number; damage?: string }> {
  rmSync(target, { recursive: true, force: true })
  names.afterCut(target, () => Math.random() < share, sectorBytes)
  const file = path.join(target, inside, 'agent.db')
  try {
    const lost = await lostIn(file, newest)
    const damage = damageOf(file)
    return { lost, ...(damage !== undefined && { damage }) }
  } catch (error) {
    return { lost: newest.size, damage: String(error) }
  }
}

async function lostIn(file: string, newest: Map<string, Acknowledgement>): Promise<number> {
  await using store: Store = await openSqliteStore({ file })
  let lost = 0
  for (const one of newest.values()) if (!holds(one, await store.loadTask(one.taskId))) lost += 1
  return lost
}

/** Whether the stored task has the acknowledged state or one that follows from it. */
function holds({ state, messages, text }: Acknowledgement, task: TaskRecord | undefined): boolean {
  if (task === undefined) return false
  const stored = task.history.filter(({ role }) => role === 'user').length
  if (stored < messages) return false
  if (isTerminal(state)) return task.status.state === state && textOf(task) === text
  // `working` may be stored later than it is visible: the task then runs again.
  return state !== 'input-required' || task.status.state === state || stored > messages
}
