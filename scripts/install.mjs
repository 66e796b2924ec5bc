// Installs what is missing, and nothing when nothing is. Plain JavaScript: it runs before anything else is there.
// `npm install`, not `npm ci`: that one refuses a lock whose packages for other platforms the registry does not have.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

if (missing()) {
  console.error('Installing what is missing (npm install) …')
  const windows = process.platform === 'win32'
  // Standard output belongs to the command that comes after this one.
  const npm = spawnSync('npm', ['install', '--no-audit', '--no-fund'], {
    cwd: root,
    stdio: ['ignore', 2, 2],
    shell: windows,
  })
  if (npm.error) console.error(`npm could not be started: ${npm.error.message}`)
  process.exitCode = npm.status ?? 1
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

function packages(file) {
  try {
    return JSON.parse(readFileSync(new URL(file, new URL('..', import.meta.url)), 'utf8')).packages
  } catch {
    return {}
  }
}
