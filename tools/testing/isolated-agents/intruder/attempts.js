// What a hostile agent tries. Each attempt resolves with what it gained, or throws if it was refused.
import childProcess from 'node:child_process'
import fs from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { Worker } from 'node:worker_threads'

const run = (command) =>
  childProcess.execSync(command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

const inWorker = (code) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(code, { eval: true, execArgv: [] })
    worker.once('message', resolve).once('error', reject)
    worker.once('exit', () => reject(new Error('the thread ended')))
  })

const write = (folder) => {
  const file = path.join(folder, `intruder-${process.pid}`)
  fs.writeFileSync(file, 'code')
  fs.rmSync(file)
  return file
}

/**
 * @param target paths and processes of the gateway and of the agent `neighbour`:
 *   {secrets, folders, environments, pids, code, caches, marker}
 */
export function attempts(target) {
  const reads = target.secrets.flatMap((file) => [
    [`read ${file}`, () => fs.readFileSync(file, 'utf8').length],
    [`read ${file} through /proc/self/root`, () => fs.readFileSync(`/proc/self/root${file}`).length],
    [`read ${file} in a thread`, () => inWorker(readInThread(file))],
    [`read ${file} in a program`, () => run(`cat '${file}'`).length],
    [`read ${file} through a link`, () => readThroughLink(file)],
    [`link ${file} into the own folder`, () => linkHere(file)],
    [`change ${file}`, () => fs.appendFileSync(file, '')],
    [`open ${file} as a database`, () => openDatabase(file)],
    [`open ${file} as a database in spite of its lock`, () => openDatabase(`file:${file}?immutable=1`)],
    [`attach ${file} to a database`, () => attachDatabase(`file:${file}?immutable=1`)],
  ])
  const folders = target.folders.flatMap((folder) => [
    [`list ${folder}`, () => foreignNames(folder)],
    [`write into ${folder}`, () => write(folder)],
  ])
  const processes = target.pids.flatMap((pid) => [
    [`read /proc/${pid}/environ`, () => fs.readFileSync(`/proc/${pid}/environ`, 'utf8').length],
    [`read /proc/${pid}/environ in a program`, () => run(`cat /proc/${pid}/environ`).length],
    [`open /proc/${pid}/mem`, () => fs.openSync(`/proc/${pid}/mem`, 'r+')],
    [`list /proc/${pid}/fd`, () => fs.readdirSync(`/proc/${pid}/fd`)],
    [`read through /proc/${pid}/root`, () => fs.readdirSync(`/proc/${pid}/root/`)],
    [`signal ${pid}`, () => process.kill(pid, 0)],
    [`run code in ${pid} with its debugger`, () => openDebugger(pid)],
    [`signal ${pid} in a program`, () => run(`kill -0 ${pid}`)],
  ])
  const writes = [...target.code, ...target.caches].flatMap((folder) => [
    [`write into ${folder}`, () => write(folder)],
    [`write into ${folder} in a program`, () => run(`touch '${folder}/intruder'`)],
  ])
  return [...reads, ...folders, ...processes, ...writes, ...ownProcess(target)]
}

const ownProcess = ({ marker, folders }) => [
  ['find a secret in the environment', () => found(JSON.stringify(process.env), marker)],
  ['find a secret in /proc/self/environ', () => found(fs.readFileSync('/proc/self/environ', 'utf8'), marker)],
  ['find an inherited file', () => inheritedFile(folders[0])],
  ['become root', () => process.setuid(0) ?? capabilities()],
  ['have capabilities', () => capabilities()],
  ['gain rights by running a program', () => statusField('NoNewPrivs', /^1$/)],
  ['make a user namespace in a program', () => run('unshare --user --map-root-user id')],
  ['unmount the private root in a program', () => run('umount -l /')],
  ['load a native addon', () => process.dlopen({ exports: {} }, '/usr/lib/x86_64-linux-gnu/libc.so.6')],
  ['listen on the inspector', async () => (await import('node:inspector')).open(0)],
  ['trace the gateway in a program', () => run('strace -p 1')],
]

const readInThread = (file) =>
  `require('node:worker_threads').parentPort.postMessage(require('node:fs').readFileSync(${JSON.stringify(file)}).length)`

/** A private root contains the folders on the way to the own one. */
function foreignNames(folder) {
  const own = process.env.DATA_DIR
  const names = fs.readdirSync(folder).filter((name) => !`${own}/`.startsWith(`${path.join(folder, name)}/`))
  if (names.length === 0) throw new Error('nothing foreign')
  return names
}

function readThroughLink(file) {
  const link = path.join(process.env.DATA_DIR, 'link')
  fs.rmSync(link, { force: true })
  fs.symlinkSync(file, link)
  return fs.readFileSync(link).length
}

function linkHere(file) {
  const link = path.join(process.env.DATA_DIR, 'hard-link')
  fs.linkSync(file, link)
  return fs.readFileSync(link).length
}

async function openDatabase(file) {
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(file)
  try {
    return database.prepare('SELECT count(*) FROM sqlite_master').get()
  } finally {
    database.close()
  }
}

async function attachDatabase(file) {
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(':memory:')
  try {
    database.prepare('ATTACH ? AS other').run(file)
    return database.prepare('SELECT count(*) FROM other.sqlite_master').get()
  } finally {
    database.close()
  }
}

/** SIGUSR1 makes Node.js listen for a debugger. */
async function openDebugger(pid) {
  process.kill(pid, 'SIGUSR1')
  await new Promise((resolve) => setTimeout(resolve, 500))
  const response = await fetch('http://127.0.0.1:9229/json/list')
  return (await response.json())[0].webSocketDebuggerUrl
}

function found(text, marker) {
  if (!text.includes(marker)) throw new Error('not found')
  return marker
}

function inheritedFile(dataDir) {
  const own = process.env.DATA_DIR
  for (const name of fs.readdirSync('/proc/self/fd')) {
    let target = ''
    try {
      target = fs.readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      continue
    }
    if (target.startsWith(dataDir) && !target.startsWith(own)) return target
  }
  throw new Error('no inherited file')
}

const capabilities = () => statusField('CapEff', /^0+$/)

/** Returns a field of the process's status unless it has the expected value. */
function statusField(name, expected) {
  const value = new RegExp(`${name}:\\s*(\\S+)`).exec(fs.readFileSync('/proc/self/status', 'utf8'))?.[1] ?? ''
  if (expected.test(value)) throw new Error('as expected')
  return value
}

/** Runs every attempt. Resolves with a table of [attempt, what it gained] of those that were not refused. */
export async function tryAll(target) {
  const gained = []
  const list = attempts(target)
  for (const [name, attempt] of list) {
    try {
      gained.push([name, String(await attempt())])
    } catch {
      // Refused.
    }
  }
  return { attempts: list.length, gained }
}

export const exhaust = {
  /** Uses more and more memory until the process is killed. */
  async memory() {
    const taken = []
    for (;;) {
      taken.push(Buffer.alloc(16 * 1024 * 1024, 1))
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  },
  /** Opens files until it is refused. */
  files() {
    const file = path.join(process.env.DATA_DIR, 'agent.key.json')
    const open = []
    try {
      for (;;) open.push(fs.openSync(file))
    } catch (error) {
      return { count: open.length, code: error.code }
    } finally {
      for (const fd of open) fs.closeSync(fd)
    }
  },
  /** Starts programs until it is refused. They outlive the agent unless something kills them. */
  async processes() {
    const pids = []
    for (;;) {
      const child = childProcess.spawn('/bin/sleep', ['1000'], { stdio: 'ignore', detached: true })
      child.on('error', () => undefined)
      if (child.pid === undefined || pids.length > 2000) return { count: pids.length }
      child.unref()
      pids.push(child.pid)
    }
  },
}

/** Resolves with `connected` or the error code of a connection. */
export function connect(address) {
  const { hostname, port } = new URL(`tcp://${address}`)
  return new Promise((resolve) => {
    const socket = net.connect(Number(port), hostname)
    socket.setTimeout(2000, () => socket.destroy(new Error('timeout')))
    socket.once('connect', () => {
      socket.destroy()
      resolve('connected')
    })
    socket.once('error', (error) => resolve(error.code ?? error.message))
  })
}
