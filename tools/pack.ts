/**
 * `npm run pack`: builds the published packages into `dist/build` and packs each of them into `dist`.
 *
 * Node strips no types below `node_modules`, so a package contains JavaScript and declarations, at the paths of the
 * sources. `dist/build` is a workspace of the same layout as the repository and also contains the agents: the Docker
 * image runs it.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

const root = path.dirname(import.meta.dirname)

/** Folders of the published packages, dependencies first. */
export const published = [
  'shared/wire',
  'shared/kit',
  'shared/engine',
  'shared/negotiation',
  'shared/encoder',
  'shared/client',
  'shared/agent',
  'relay',
  'console',
  'gateway',
  'cli',
]

interface Manifest {
  name: string
  version: string
  description: string
  private?: boolean
  exports?: Record<string, string>
  imports?: Record<string, string>
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  [field: string]: unknown
}

const readManifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(path.join(root, folder, 'package.json'), 'utf8'))

const writeJson = (file: string, content: object) =>
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`)

/** Builds into `buildDir` (emptied first) and returns the paths of the tarballs in `destination`. */
export function pack(buildDir: string, destination: string): string[] {
  build(buildDir)
  mkdirSync(destination, { recursive: true })
  const workspaces = published.flatMap((folder) => ['--workspace', folder])
  const args = ['pack', '--json', '--silent', '--pack-destination', path.resolve(destination), ...workspaces]
  execFileSync('npm', args, { cwd: buildDir, stdio: ['ignore', 'ignore', 'inherit'] })
  return published.map((folder) => path.join(destination, tarballName(readManifest(folder))))
}

/** The file name that npm gives a tarball. */
const tarballName = ({ name, version }: Manifest) =>
  `${name.replace(/^@/, '').replace('/', '-')}-${version}.tgz`

/** Builds a workspace of compiled packages, with the agents and the lockfile. */
export function build(buildDir: string): void {
  rmSync(buildDir, { recursive: true, force: true })
  const tsc = path.join(root, 'node_modules', '.bin', 'tsc')
  const config = path.join(root, 'tsconfig.build.json')
  const { status } = spawnSync(tsc, ['-p', config, '--outDir', path.resolve(buildDir)], { stdio: 'inherit' })
  if (status !== 0) throw new Error('Nothing is packed while the type check fails.')
  for (const file of globSync('**/*.js', { cwd: buildDir })) rewriteFileUrls(path.join(buildDir, file))
  const agents = globSync('agents/*/package.json', { cwd: root }).map((file) => path.dirname(file))
  for (const folder of [...published, ...agents]) {
    cpSync(path.join(root, folder), path.join(buildDir, folder), { recursive: true, filter: isAsset })
    writePackage(folder, path.join(buildDir, folder))
  }
  const { name, version, type, engines } = readManifest('.')
  const workspaces = [...published, 'agents/*']
  writeJson(path.join(buildDir, 'package.json'), { name, version, private: true, type, engines, workspaces })
  copyFileSync(path.join(root, 'package-lock.json'), path.join(buildDir, 'package-lock.json'))
}

/** Whether a file is one that the compiler does not copy, such as fonts, skills, settings and `bin.mjs`. */
function isAsset(file: string): boolean {
  const name = path.basename(file)
  if (['vectors', 'training', 'node_modules', 'tsconfig.json'].includes(name)) return false
  return statSync(file).isDirectory() || !file.endsWith('.ts')
}

/** Rewrites `new URL('./x.ts', import.meta.url)`, because the compiler rewrites only imports. */
function rewriteFileUrls(file: string): void {
  const text = readFileSync(file, 'utf8')
  const rewritten = text.replace(
    /(new URL\(\s*['"]\.{1,2}\/[^'"]+\.)ts(['"],\s*import\.meta\.url\))/g,
    '$1js$2',
  )
  const left = /^.*\bimport\.meta\b.*\.ts['"`].*$/m.exec(rewritten)
  if (left !== null)
    throw new Error(`${file} names a .ts file other than by new URL('./x.ts', import.meta.url): ${left[0]}`)
  if (rewritten !== text) writeFileSync(file, rewritten)
}

function writePackage(folder: string, buildDir: string): void {
  const manifest = readManifest(folder)
  writeJson(path.join(buildDir, 'package.json'), packedManifest(manifest))
  if (manifest.private) return
  for (const name of ['LICENSE', 'CHANGELOG.md'])
    copyFileSync(path.join(root, name), path.join(buildDir, name))
  if (folder === 'cli') copyFileSync(path.join(root, 'README.md'), path.join(buildDir, 'README.md'))
  else if (!existsSync(path.join(buildDir, 'README.md')))
    writeFileSync(path.join(buildDir, 'README.md'), readmeOf(manifest))
  for (const types of publicTypes(manifest)) {
    const declaration = path.join(buildDir, types)
    // The public types use Buffer and AbortSignal. This line spares authors the `types` option in their tsconfig.json.
    writeFileSync(declaration, `/// <reference types="node" />\n${readFileSync(declaration, 'utf8')}`)
  }
}

const readmeOf = ({ name, description }: Manifest) =>
  `# ${name}\n\n${description}. A part of Parley: see the packages \`@parley/agent\` (write an agent) and \`parley\` (run agents behind a gateway).\n`

const built = (source: string, extension: string) => source.replace(/\.ts$/, extension)

/** The declarations of a package's public entries, except pattern entries. */
const publicTypes = ({ exports = {} }: Manifest) =>
  Object.entries(exports).flatMap(([name, source]) =>
    name.includes('*') || !source.endsWith('.ts') ? [] : [built(source, '.d.ts')],
  )

/** The source manifest with paths to the built files, without the fields that only the repository needs. */
function packedManifest(ours: Manifest) {
  const { scripts: _scripts, devDependencies: _development, exports, imports, ...manifest } = ours
  const each = <To>(paths: Record<string, string>, to: (source: string) => To): Record<string, To> =>
    Object.fromEntries(Object.entries(paths).map(([name, source]) => [name, to(source)]))
  const files = (source: string) =>
    source.endsWith('.ts') ? { types: built(source, '.d.ts'), default: built(source, '.js') } : source
  return {
    ...manifest,
    ...(exports && { exports: each(exports, files) }),
    ...(imports && { imports: each(imports, (source) => built(source, '.js')) }),
    dependencies: {
      ...manifest.dependencies,
      ...(publicTypes(ours).length > 0 && { '@types/node': nodeTypes }),
    },
  }
}

const nodeTypes = readManifest('.').devDependencies?.['@types/node']

if (import.meta.main) {
  const dist = path.join(root, 'dist')
  for (const tarball of pack(path.join(dist, 'build'), dist))
    console.log(path.relative(process.cwd(), tarball))
}
