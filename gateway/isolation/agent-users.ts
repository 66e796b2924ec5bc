import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { chmod, lchown, lstat, readdir } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'

const fileFormat = z.object({
  /** User id by agent. An id is never given to another agent. */
  users: z.record(z.string(), z.number().int().positive()),
})

/** The user ids of the agents, kept in `DATA_DIR/agent-users.json`. Group ids are equal to user ids. */
export class AgentUsers {
  readonly #file: string
  readonly #range: readonly [first: number, last: number]
  readonly #users: Map<string, number>

  private constructor(file: string, range: readonly [number, number], users: Map<string, number>) {
    this.#file = file
    this.#range = range
    this.#users = users
  }

  /** @throws Error if the file is damaged, because new ids would leave the agents without access to their data */
  static open(dataDir: string, range: readonly [first: number, last: number]): AgentUsers {
    const file = path.join(dataDir, 'agent-users.json')
    return new AgentUsers(file, mappedRange(range), readUsers(file))
  }

  /** Returns the id of the agent's user. The first call for an agent chooses a free one at random. */
  idOf(agent: string): number {
    const known = this.#users.get(agent)
    if (known !== undefined) return known
    const id = this.#freeId()
    this.#users.set(agent, id)
    this.#save()
    return id
  }

  /** A random id makes it improbable that gateways with different data folders on one machine choose the same one. */
  #freeId(): number {
    const [first, last] = this.#range
    const taken = new Set([...this.#users.values(), ...runningUsers()])
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      const id = randomInt(first, last + 1)
      if (!taken.has(id)) return id
    }
    throw new Error(`AGENT_UIDS: no free user id from ${first} to ${last}`)
  }

  #save(): void {
    mkdirSync(path.dirname(this.#file), { recursive: true, mode: 0o700 })
    const next = `${this.#file}.next`
    const text = `${JSON.stringify({ users: Object.fromEntries(this.#users) }, null, 2)}\n`
    writeFileSync(next, text, { mode: 0o600, flush: true })
    renameSync(next, this.#file)
  }
}

function readUsers(file: string): Map<string, number> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return new Map()
    throw error
  }
  const read = fileFormat.safeParse(jsonOf(text))
  if (!read.success) throw new Error(`${file} is damaged: restore it from a backup`)
  return new Map(Object.entries(read.data.users))
}

/** Replaces a range that does not exist in the user namespace of a container by one that does. */
function mappedRange(range: readonly [first: number, last: number]): readonly [number, number] {
  const limit = mappedIds()
  return range[1] < limit || limit < 30_000 ? range : [20_000, Math.min(limit, 60_000) - 1]
}

/** Returns the number of user ids from 0 on that exist here. */
function mappedIds(): number {
  try {
    const [inside, , count] = readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\s+/).map(Number)
    return inside === 0 && count !== undefined ? count : Number.POSITIVE_INFINITY
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

/** A process that has ended, but is still in its parent's table (a zombie), does nothing more unless it has threads. */
function isRunning(uid: number, pid: string): boolean {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1] ?? ''
    const isOver = /^[ZX]/.test(field('State')) && Number(field('Threads')) <= 1
    return !isOver && field('Uid').split(/\s+/).map(Number).includes(uid)
  } catch {
    return false
  }
}

function processesOf(uid: number): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.filter((pid) => isRunning(uid, pid)).map(Number)
}

function runningUsers(): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.flatMap((pid) => {
    try {
      return [statSync(`/proc/${pid}`).uid]
    } catch {
      return []
    }
  })
}

/**
 * Gives a folder and everything in it to a user, and closes it to all others. Call it only while no process of the user
 * runs. A file with several links is left alone, because a second name of a file outside the folder would hand that
 * file over.
 */
export async function handOver(folder: string, uid: number): Promise<void> {
  await chmod(folder, 0o700)
  const stack = [folder]
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const entry = await lstat(next)
    const isFolder = entry.isDirectory()
    if (!isFolder && entry.nlink > 1) continue
    if (entry.uid !== uid || entry.gid !== uid) await lchown(next, uid, uid)
    if (!isFolder) continue
    const parent = next
    stack.push(...(await readdir(next)).map((name) => path.join(parent, name)))
  }
}

const killAttempts = 20

/** Kills every process of a user. Resolves with false if some of them still run. */
export async function killAllOf(uid: number): Promise<boolean> {
  for (let attempt = 0; attempt < killAttempts; attempt += 1) {
    await killAtOnce(uid)
    const left = processesOf(uid)
    if (left.length === 0) return true
    // A process of the user may have killed the program that should have killed it.
    for (const pid of left) kill(pid)
    await wait(20)
  }
  return processesOf(uid).length === 0
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** The kernel kills all processes in one step, which a process that starts others cannot outrun. */
async function killAtOnce(uid: number): Promise<void> {
  const user = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--no-new-privs']
  const child = spawn('setpriv', [...user, '/bin/sh', '-c', 'kill -KILL -1'], { stdio: 'ignore' })
  await new Promise((resolve) => child.once('close', resolve).once('error', resolve))
}
