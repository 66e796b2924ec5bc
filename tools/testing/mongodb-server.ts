import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import os, { homedir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { answers, freePort } from './port.ts'

/** What `npm run mongodb` builds its server from; another content is another build. */
export const mongodbSources = path.join(import.meta.dirname, '..', 'mongodb')

/** Where the built server stands, outside the checkout. */
export function mongodbFolder(): string {
  const cache = process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache')
  const files = globSync('*', { cwd: mongodbSources }).sort()
  const content = files.map((file) => readFileSync(path.join(mongodbSources, file), 'utf8'))
  return path.join(cache, 'parley', `mongodb-${hash('sha256', content.join('\0')).slice(0, 12)}`)
}

export type MongodbKind = 'MONGODB_URL' | 'mongod' | 'FerretDB with DocumentDB'

/** The server that the suites use which need one: a given one, one of the machine, else the one that was built. */
export function mongodbKind(): MongodbKind | undefined {
  if (process.env['MONGODB_URL']) return 'MONGODB_URL'
  if (spawnSync('mongod', ['--version']).status === 0) return 'mongod'
  // It changes its root folder.
  const mayRun = process.getuid?.() === 0 && existsSync(mongodbFolder())
  return mayRun ? 'FerretDB with DocumentDB' : undefined
}

/** False where suites that want MongoDB must be skipped, `(needs mongod)` in their titles. */
export const hasMongodb = mongodbKind() !== undefined

export interface MongodbServer extends AsyncDisposable {
  kind: MongodbKind
  /** Of a database that nobody else uses. */
  newUrl(): string
  /** Ends the process, its clients being cut off. One that was given by address cannot be stopped. */
  kill(): Promise<void>
  /** Starts it again at the same port, with what it had acknowledged. */
  restart(): Promise<void>
}

/** A server of its own on a free port of this machine, or the one of MONGODB_URL. */
export async function startMongodb(): Promise<MongodbServer> {
  const kind = mongodbKind()
  if (kind === undefined) throw new Error('No MongoDB-compatible server: see npm run mongodb')
  const name = () => `parley_${randomBytes(6).toString('hex')}`
  if (kind === 'MONGODB_URL') {
    const { MONGODB_URL = '' } = process.env
    const stays = () => Promise.reject(new Error('The server of MONGODB_URL stays as it is'))
    const newUrl = () => MONGODB_URL.replace(/^([^:]+:\/\/[^/?]+)\/?[^?]*/, `$1/${name()}`)
    return { kind, newUrl, kill: stays, restart: stays, [Symbol.asyncDispose]: async () => {} }
  }
  const port = await freePort()
  const program = kind === 'mongod' ? await mongod(port) : await built(port)
  let child = await started(program, port)
  const kill = async () => {
    // DocumentDB's indexes do not bear a kill: who uses them hangs afterwards. Its clients see the same of an orderly end.
    if (program.beneath !== undefined) await orderlyEnded(child)
    await ended(child)
    await silent(program.beneath)
  }
  return {
    kind,
    newUrl: () => `mongodb://127.0.0.1:${port}/${name()}`,
    kill,
    restart: async () => {
      await kill()
      child = await started(program, port)
    },
    [Symbol.asyncDispose]: async () => {
      // What it holds goes with it: an orderly end would take seconds.
      await ended(child)
      await silent(program.beneath)
      await rm(program.data, { recursive: true, force: true })
    },
  }
}

interface Program {
  command: string
  args: string[]
  data: string
  /** Port of the database beneath, which ends a moment after its server. */
  beneath?: number
}

async function mongod(port: number): Promise<Program> {
  const data = await mkdtemp(path.join(os.tmpdir(), 'parley-mongodb-'))
  const args = ['--bind_ip', '127.0.0.1', '--port', String(port), '--dbpath', data, '--quiet']
  return { command: 'mongod', args, data }
}

/** Its data stand below its root folder, named after this process; those of dead ones are removed. */
async function built(port: number): Promise<Program> {
  const root = path.join(mongodbFolder(), 'root')
  const all = path.join(root, 'data')
  mkdirSync(all, { recursive: true })
  for (const name of readdirSync(all)) {
    if (!isAlive(Number.parseInt(name, 10))) rmSync(path.join(all, name), { recursive: true, force: true })
  }
  const name = `${process.pid}-${randomBytes(4).toString('hex')}`
  const data = path.join(all, name)
  const copy = spawnSync('cp', ['-a', path.join(mongodbFolder(), 'template'), data])
  if (copy.status !== 0) throw new Error(`The data folder could not be made: ${String(copy.stderr)}`)
  const beneath = await freePort()
  const args = [root, `/data/${name}`, String(beneath), String(port)]
  return { command: path.join(mongodbFolder(), 'server'), args, data, beneath }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** It ends with its standard input, that is with this process at the latest. */
async function started({ command, args }: Program, port: number): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    said = (said + String(chunk)).slice(-2000)
  })
  child.on('error', (error) => {
    said += error.message
  })
  for (let attempt = 0; attempt < 1200; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}: ${said}`)
    if (await answers(port)) return child
    await wait(50)
  }
  await ended(child)
  throw new Error(`${command} does not listen: ${said}`)
}

async function orderlyEnded(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const over = once(child, 'close')
  child.stdin?.end()
  // A busy machine takes its time, and a kill would be worse.
  await Promise.race([over, wait(60_000, undefined, { ref: false })])
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const over = once(child, 'close')
  child.kill('SIGKILL')
  await over
}

/** A new one must not meet the old one, which would answer in its place and then be gone. */
async function silent(port: number | undefined): Promise<void> {
  if (port === undefined) return
  for (let attempt = 0; attempt < 2400 && (await answers(port)); attempt += 1) await wait(25)
}
