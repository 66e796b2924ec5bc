/**
 * `npm run mongodb`: builds a MongoDB-compatible server for the test suites that need one, `(needs mongod)`: FerretDB
 * from the Go module proxy, on PostgreSQL with DocumentDB from Debian's unstable packages. These are extracted into the
 * cache folder rather than installed. With `--start` it runs until Ctrl-C. `npm test` builds it if neither MONGODB_URL
 * nor a `mongod` is available. Needs root on Debian, and Go.
 */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { mongodbFolder, mongodbKind, mongodbSources, startMongodb } from './testing/mongodb-server.ts'

const packages = ['postgresql-18', 'postgresql-18-documentdb', 'dash']
/** Files that the database server does not read, but that take most of the space. */
const leftOut = ['doc', 'man', 'locale', 'proj', 'gdal', 'perl', 'fonts', 'zoneinfo/right']
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg'
const nobody = 65_534

/** Prints its progress, or the reason for a failure. @returns true if a server is available */
export async function buildMongodb(): Promise<boolean> {
  const kind = mongodbKind()
  if (kind !== undefined) return true
  const missing = whatIsMissing()
  if (missing !== undefined) {
    console.log(
      `No MongoDB-compatible server: ${missing}. Set MONGODB_URL to one, or put a mongod on the path.`,
    )
    return false
  }
  console.log(
    'Building a MongoDB-compatible server for the tests (130 MB of packages, one to three minutes) …',
  )
  const folder = mongodbFolder()
  mkdirSync(path.dirname(folder), { recursive: true })
  const draft = mkdtempSync(`${folder}-`)
  try {
    chmodSync(draft, 0o755)
    await fill(draft)
    if (!existsSync(folder)) renameSync(draft, folder)
    console.log('The MongoDB-compatible server is built')
    return true
  } catch (error) {
    console.error(`The MongoDB-compatible server could not be built: ${(error as Error).message}`)
    return false
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Whether this machine has the programs and permissions that the build needs. */
export function canBuildMongodb(): boolean {
  return whatIsMissing() === undefined
}

function whatIsMissing(): string | undefined {
  if (process.env.PARLEY_INSTALL === 'no') return 'PARLEY_INSTALL=no prevents the build'
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'the build needs root on Debian'
  const programs = { 'apt-get': '--version', 'dpkg-deb': '--version', tar: '--version', go: 'version' }
  const absent = Object.entries(programs).find(([name, asked]) => spawnSync(name, [asked]).status !== 0)
  if (absent !== undefined) return `${absent[0]} is needed for the build`
  if (!existsSync(keyring)) return 'the package debian-archive-keyring is needed for the build'
  return debianMirror() === undefined ? 'apt has no Debian mirror' : undefined
}

async function fill(draft: string): Promise<void> {
  const root = path.join(draft, 'root')
  unpack(download(path.join(draft, 'apt')), root)
  rmSync(path.join(draft, 'apt'), { recursive: true })
  furnish(root)
  const server = path.join(draft, 'server')
  const environment = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly -buildvcs=false' }
  run('go', ['build', '-trimpath', '-ldflags', '-s -w', '-o', server, '.'], {
    cwd: mongodbSources,
    env: environment,
  })
  const [one, other] = [await freePort(), await freePort()]
  run(server, [root, '/data/template', String(one), String(other), 'init'])
  renameSync(path.join(root, 'data', 'template'), path.join(draft, 'template'))
}

/** The package mirror that this machine uses. */
function debianMirror(): string | undefined {
  const format = ['indextargets', '--format', '$(ORIGIN) $(REPO_URI)']
  const targets = () => spawnSync('apt-get', format, { encoding: 'utf8' }).stdout.split('\n')
  const find = () => targets().find((line) => /^Debian .*\/debian\/?$/.test(line))
  const known = find() ?? (spawnSync('apt-get', ['update', '-q']).status === 0 ? find() : undefined)
  return known?.slice('Debian '.length)
}

/** Downloads packages with separate lists and state, leaving the machine's own unchanged. @returns the package files */
function download(folder: string): string[] {
  for (const part of ['lists/partial', 'cache/archives/partial']) {
    mkdirSync(path.join(folder, part), { recursive: true })
  }
  const file = (name: string) => path.join(folder, name)
  writeFileSync(file('sources.list'), `deb [signed-by=${keyring}] ${debianMirror()} sid main\n`)
  writeFileSync(file('status'), '')
  const options = {
    'Dir::Etc::sourcelist': file('sources.list'),
    'Dir::Etc::sourceparts': '/dev/null',
    'Dir::Etc::preferencesparts': '/dev/null',
    'Dir::State::lists': file('lists'),
    'Dir::State::status': file('status'),
    'Dir::Cache': file('cache'),
    'APT::Sandbox::User': 'root',
    'Acquire::Retries': '3',
  }
  const given = Object.entries(options).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  run('apt-get', [...given, '-q', 'update'])
  run('apt-get', [...given, '-q', '-y', '--no-install-recommends', '--download-only', 'install', ...packages])
  return globSync('cache/archives/*.deb', { cwd: folder }).map(file)
}

function unpack(files: string[], root: string): void {
  mkdirSync(root, { recursive: true })
  const excluded = leftOut.map((part) => `--exclude='./usr/share/${part}'`).join(' ')
  const script = `set -e; for file in "$@"; do
    dpkg-deb --fsys-tarfile "$file" | tar -x -C "$root" --keep-directory-symlink ${excluded}
  done`
  run('bash', ['-o', 'pipefail', '-c', script, 'unpack', ...files], { env: { ...process.env, root } })
}

/** Creates the files that the installation scripts of the packages would create. */
function furnish(root: string): void {
  const at = (name: string) => path.join(root, name)
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    if (!existsSync(at(name))) symlinkSync(`usr/${name}`, at(name))
  }
  for (const name of ['dev/shm', 'tmp', 'data', 'etc', 'run']) mkdirSync(at(name), { recursive: true })
  for (const name of ['dev/shm', 'tmp']) chmodSync(at(name), 0o1777)
  chownSync(at('data'), nobody, nobody)
  for (const [name, major, minor] of [
    ['null', 1, 3],
    ['zero', 1, 5],
    ['urandom', 1, 9],
  ] as const) {
    run('mknod', ['-m', '666', at(`dev/${name}`), 'c', String(major), String(minor)])
  }
  writeFileSync(at('etc/passwd'), `nobody:x:${nobody}:${nobody}::/:/bin/sh\n`)
  writeFileSync(at('etc/group'), `nogroup:x:${nobody}:\n`)
  // DocumentDB connects to its own server by this name.
  writeFileSync(at('etc/hosts'), '127.0.0.1 localhost\n')
  writeFileSync(at('etc/nsswitch.conf'), 'passwd: files\ngroup: files\nhosts: files\n')
  if (!existsSync(at('usr/bin/sh'))) symlinkSync('dash', at('usr/bin/sh'))
  const extensions = at('usr/share/postgresql/18/extension')
  copyFileSync(path.join(extensions, 'postgis-3.control'), path.join(extensions, 'postgis.control'))
  run('ldconfig', ['-r', root])
}

function run(command: string, args: string[], options: { cwd?: string; env?: NodeJS.ProcessEnv } = {}): void {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    ...options,
  })
  if (status === 0) return
  const said = error?.message ?? `${stdout}${stderr}`.trim().split('\n').slice(-5).join('\n')
  throw new Error(`${command} ${args.at(-1) ?? ''} failed: ${said}`)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as { port: number }
  await new Promise((done) => server.close(done))
  return port
}

/** Runs the server on a free port until SIGINT or SIGTERM, then deletes its data. */
async function serve(): Promise<void> {
  await using server = await startMongodb()
  console.log(`STORE_URL=${server.newUrl()}`)
  console.log('Running until Ctrl-C, which deletes the data. For trials only.')
  await new Promise((stop) => ['SIGINT', 'SIGTERM'].forEach((signal) => process.once(signal, stop)))
}

if (import.meta.main) {
  if (!(await buildMongodb())) process.exitCode = 1
  else if (process.argv.includes('--start')) await serve()
}
