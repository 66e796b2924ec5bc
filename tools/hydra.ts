/**
 * `npm run hydra`: builds Ory Hydra (Apache-2.0) from the Go module proxy into the cache folder, for the test suites
 * that need it, `(needs hydra)`.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'
import { hydraBinary, hydraVersion } from './testing/hydra.ts'

const module = `github.com/ory/hydra/v2@${hydraVersion}`
const environment = { ...process.env, CGO_ENABLED: '1', GOFLAGS: '-mod=mod -buildvcs=false' }

const binary = hydraBinary()
if (existsSync(binary)) {
  console.log(`Hydra ${hydraVersion} is there: ${binary}`)
} else if (!(has('go', ['version']) && has('gcc', ['--version']))) {
  console.error(
    'Go 1.22 or newer and gcc are needed to build Ory Hydra; or set HYDRA_ADMIN_URL and HYDRA_PUBLIC_URL to one on this machine.',
  )
  process.exitCode = 1
} else {
  process.exitCode = build() ? 0 : 1
}

function build(): boolean {
  const folder = path.dirname(binary)
  mkdirSync(folder, { recursive: true })
  const draft = mkdtempSync(path.join(folder, 'build-'))
  try {
    console.log(`Building ${module} (a few minutes, some hundred MB of Go modules) …`)
    // `go install` rejects a module with replacements, so this builds a copy.
    const downloaded = spawnSync('go', ['mod', 'download', '-json', module], {
      env: environment,
      encoding: 'utf8',
    })
    const { Dir: source, Error: fault } = JSON.parse(downloaded.stdout || '{}') as Record<string, string>
    if (source === undefined) {
      console.error(`The module could not be downloaded: ${fault ?? downloaded.stderr}`)
      return false
    }
    const copy = path.join(draft, 'source')
    const built = path.join(draft, 'hydra')
    const tags = ['-tags', 'sqlite,sqlite_omit_load_extension', '-ldflags', '-s -w']
    return (
      run('cp', ['-R', source, copy]) &&
      run('chmod', ['-R', 'u+w', copy]) &&
      // This replacement points to a folder that the published module does not contain. The same package exists as a
      // module.
      run('go', ['mod', 'edit', '-dropreplace=github.com/ory/hydra-client-go/v2'], copy) &&
      run('go', ['build', ...tags, '-o', built, '.'], copy) &&
      keep(built)
    )
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

function keep(built: string): boolean {
  renameSync(built, binary)
  console.log(`Hydra ${hydraVersion} is built: ${binary}`)
  return true
}

function run(command: string, args: string[], cwd?: string): boolean {
  const { status } = spawnSync(command, args, {
    stdio: 'inherit',
    env: environment,
    ...(cwd !== undefined && { cwd }),
  })
  if (status !== 0) console.error(`${command} ${args[0]} failed`)
  return status === 0
}

function has(command: string, args: string[]): boolean {
  return spawnSync(command, args).status === 0
}
