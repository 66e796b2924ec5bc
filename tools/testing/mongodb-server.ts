import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { hash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import os, { homedir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { answers, freePort } from './port.ts'

/** The inputs of the build by `npm run mongodb`. A change leads to a new build. */
export const mongodbSources = path.join(import.meta.dirname, '..', 'mongodb')

/** Folder for the built server, outside the checkout. */
export function mongodbFolder(): string {
  const cache = process.env['XDG_CACHE_HOME'] || path.join(homedir(), '.cache')
  const files = globSync('*', { cwd: mongodbSources }).sort()
  const content = files.map((file) => readFileSync(path.join(mongodbSources, file), 'utf8'))
  return path.join(cache, 'parley', `mongodb-${hash('sha256', content.join('\0')).slice(0, 12)}`)
}

export type MongodbKind = 'MONGODB_URL' | 'mongod' | 'FerretDB with DocumentDB'

/** The server for the test suites: the configured one, an installed one, or the built one. */
export function mongodbKind(): MongodbKind | undefined {
  if (process.env['MONGODB_URL']) return 'MONGODB_URL'
  if (spawnSync('mongod', ['--version']).status === 0) return 'mongod'
  // The build uses chroot, which needs root.
  const mayRun = process.getuid?.() === 0 && existsSync(mongodbFolder())
  return mayRun ? 'FerretDB with DocumentDB' : undefined
}

/** If false, suites that need MongoDB are skipped. Their titles contain `(needs mongod)`. */
export const hasMongodb = mongodbKind() !== undefined

export interface MongodbServer extends AsyncDisposable {
  kind: MongodbKind
  /** Address of a new database. */
  newUrl(): string
  /** Kills the process, which disconnects its clients. A server configured by its address cannot be killed. */
  kill(): Promise<void>
  /** Starts the server again on the same port, with all acknowledged writes. */
  restart(): Promise<void>
}

/** A new server on a free port of this machine, or the one at MONGODB_URL. */
export async function startMongodb(): Promise<MongodbServer> {
  const kind = mongodbKind()
  if (kind === undefined) throw new Error('No MongoDB-compatible server: see npm run mongodb')
  const name = () => `parley_${randomBytes(6).toString('hex')}`
  if (kind === 'MONGODB_URL') {
    const { MONGODB_URL = '' } = process.env
    const stays = () => Promise.reject(new Error('The server at MONGODB_URL cannot be killed'))
    const newUrl = () => MONGODB_URL.replace(/^([^:]+:\/\/[^/?]+)\/?[^?]*/, `$1/${name()}`)
    return { kind, newUrl, kill: stays, restart: stays, [Symbol.asyncDispose]: async () => {} }
  }
  const port = await freePort()
  const program = kind === 'mongod' ? await mongod(port) : await built(port)
  let child = await started(program, port)
  const kill = async () => {
    // DocumentDB's indexes do not survive a kill, so later queries hang. To clients, an orderly shutdown looks the same.
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
      // The data is deleted, so an orderly shutdown would only take time.
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
  /** Port of the underlying PostgreSQL server, which exits shortly after the server. */
  beneath?: number
}

async function mongod(port: number): Promise<Program> {
  const data = await mkdtemp(path.join(os.tmpdir(), 'parley-mongodb-'))
  const args = ['--bind_ip', '127.0.0.1', '--port', String(port), '--dbpath', data, '--quiet']
  return { command: 'mongod', args, data }
}

/** Prepares a data folder below the root folder, named after this process. Deletes folders of dead processes. */
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
  if (copy.status !== 0) throw new Error(`The data folder could not be created: ${String(copy.stderr)}`)
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

/** Starts the server, which exits when its standard input closes, at the latest when this process exits. */
async function started({ command, args }: Program, port: number): Promise<ChildProcess> {
  const child = spawn(command, args, { stdio: ['pipe', 'ignore', 'pipe'] })
  let output = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    output = (output + String(chunk)).slice(-2000)
  })
  child.on('error', (error) => {
    output += error.message
  })
  for (let attempt = 0; attempt < 1200; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`${command} ended with ${child.exitCode}: ${output}`)
    // A process that ended while the port was tried has left it to another server.
    if ((await answers(port)) && child.exitCode === null) return child
    await wait(50)
  }
  await ended(child)
  throw new Error(`${command} does not listen: ${output}`)
}

async function orderlyEnded(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const over = once(child, 'close')
  child.stdin?.end()
  // The limit is generous for a machine under load, because a kill would damage the indexes.
  await Promise.race([over, wait(60_000, undefined, { ref: false })])
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const over = once(child, 'close')
  child.kill('SIGKILL')
  await over
}

/** Waits until the old server has exited, so that a new one does not connect to it. */
async function silent(port: number | undefined): Promise<void> {
  if (port === undefined) return
  for (let attempt = 0; attempt < 2400 && (await answers(port)); attempt += 1) await wait(25)
}
