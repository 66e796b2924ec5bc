/**
 * `npm run pack`: the package that others install. Node strips no types below `node_modules`, so the package holds
 * JavaScript and declarations, at the same paths as the sources. An author's own `agent.ts` stays TypeScript.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  cpSync,
  existsSync,
  globSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'

const root = path.dirname(import.meta.dirname)
const rooms = ['shared', 'gateway', 'agents', 'cli']
const papers = ['README.md', 'LICENSE', 'CHANGELOG.md']

/** Builds into `buildDir` (emptied first) and returns the path of the tarball in `destination`. */
export function pack(buildDir: string, destination: string): string {
  rmSync(buildDir, { recursive: true, force: true })
  build(buildDir)
  const args = ['pack', '--json', '--silent', '--pack-destination', path.resolve(destination)]
  const made = execFileSync('npm', args, { cwd: buildDir, encoding: 'utf8' })
  const [tarball] = JSON.parse(made) as { filename: string }[]
  return path.join(destination, tarball?.filename ?? '')
}

/** The content of the package, ready to run. */
export function build(buildDir: string): void {
  const tsc = path.join(root, 'node_modules', '.bin', 'tsc')
  const config = path.join(root, 'tsconfig.build.json')
  const { status } = spawnSync(tsc, ['-p', config, '--outDir', path.resolve(buildDir)], { stdio: 'inherit' })
  if (status !== 0) throw new Error('Nothing is packed while the type check fails.')
  for (const file of globSync('**/*.js', { cwd: buildDir })) rewriteFileUrls(path.join(buildDir, file))
  for (const room of rooms) {
    cpSync(path.join(root, room), path.join(buildDir, room), { recursive: true, filter: isAsset })
  }
  for (const paper of papers.filter((name) => existsSync(path.join(root, name)))) {
    copyFileSync(path.join(root, paper), path.join(buildDir, paper))
  }
  const manifest = packedManifest()
  writeFileSync(path.join(buildDir, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
  for (const { types } of Object.values(manifest.exports)) {
    const declaration = path.join(buildDir, types)
    // The author's API speaks of Buffer and AbortSignal; with this line no tsconfig has to name their types.
    writeFileSync(declaration, `/// <reference types="node" />\n${readFileSync(declaration, 'utf8')}`)
  }
}

/** Fonts, skills, settings, `bin.mjs`: all that the compiler does not carry over. What is for our own tests stays here. */
function isAsset(file: string): boolean {
  if (path.basename(file) === 'vectors' || file === path.join(root, 'shared', 'testing')) return false
  return statSync(file).isDirectory() || !file.endsWith('.ts')
}

/** The compiler rewrites imports; a file named by `new URL('./x.ts', import.meta.url)` is ours to rewrite. */
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

interface Manifest {
  exports: Record<string, string>
  imports: Record<string, string>
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  [key: string]: unknown
}

/** Ours without what only the clone needs, every path leading to the built file. */
function packedManifest() {
  const ours = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as Manifest
  const { private: _private, scripts: _scripts, devDependencies, dependencies, ...rest } = ours
  const built = (source: string, extension: string) => source.replace(/\.ts$/, extension)
  const each = <To>(paths: Record<string, string>, to: (source: string) => To): Record<string, To> =>
    Object.fromEntries(Object.entries(paths).map(([name, source]) => [name, to(source)]))
  return {
    ...rest,
    exports: each(ours.exports, (source) => ({
      types: built(source, '.d.ts'),
      default: built(source, '.js'),
    })),
    imports: each(ours.imports, (source) => built(source, '.js')),
    // Declarations of ours name its types, so whoever installs us needs it too.
    dependencies: { ...dependencies, '@types/node': devDependencies['@types/node'] },
  }
}

if (import.meta.main) console.log(pack(path.join(root, 'dist'), root))
