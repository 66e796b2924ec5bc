import { execFile, execFileSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pack, published } from './pack.ts'

const run = promisify(execFile)
const root = path.dirname(import.meta.dirname)
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-pack-'))
const project = path.join(folder, 'project')
const modules = path.join(project, 'node_modules')
const tsc = path.join(root, 'node_modules', '.bin', 'tsc')

const nameOf = (source: string) => String(readJson(path.join(root, source, 'package.json'))['name'])
const names = published.map(nameOf)
/** Absolute paths of the files of all packages. */
const packedFiles = (pattern: string) =>
  names.flatMap((name) =>
    globSync(pattern, { cwd: path.join(modules, name) }).map((file) => path.join(modules, name, file)),
  )

function readJson(file: string): Record<string, unknown> {
  return JSON.parse(readFileSync(file, 'utf8'))
}

beforeAll(() => {
  mkdirSync(project)
  for (const [index, tarball] of pack(path.join(folder, 'build'), folder).entries()) {
    const installed = path.join(modules, names[index] ?? '')
    mkdirSync(installed, { recursive: true })
    execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed])
  }
  linkDependencies()
  writeFileSync(path.join(project, 'package.json'), '{"type": "module"}')
  const options = { strict: true, noEmit: true, module: 'nodenext', target: 'es2024', skipLibCheck: true }
  writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** Installs the packages without a registry. Their dependencies are links into this repository. */
function linkDependencies(): void {
  const ours = path.join(root, 'node_modules')
  const isParley = (name: string) => /^(parley|@parley|@parley-agents)$/.test(name)
  for (const name of readdirSync(ours).filter((entry) => !entry.startsWith('.') && !isParley(entry)))
    symlinkSync(path.join(ours, name), path.join(modules, name))
}

test('an agent.ts in another folder runs and passes the type check', async () => {
  writeFileSync(
    path.join(project, 'agent.ts'),
    `import { defineAgent, file } from '@parley/agent'
    const agent = defineAgent({
      name: 'hello',
      description: 'Greets',
      skills: [{ id: 'greet', name: 'Greet', description: 'Greets by name' }],
      handle: ({ text, files }) => file(text, 'text/plain', files[0]?.bytes ?? 'none'),
    })
    export default agent
    console.log(agent.name)`,
  )
  expect((await run(process.execPath, ['agent.ts'], { cwd: project })).stdout).toBe('hello\n')
  await run(tsc, [], { cwd: project })
})

test('the former imports parley/handler, parley/client and parley/testing still work', async () => {
  writeFileSync(
    path.join(project, 'former.ts'),
    `import assert from 'node:assert/strict'
    import { defineAgent } from '@parley/agent'
    import { testAgent } from '@parley/agent/testing'
    import { signedFetch } from '@parley/client'
    import * as client from 'parley/client'
    import * as handler from 'parley/handler'
    import * as testing from 'parley/testing'
    assert.equal(handler.defineAgent, defineAgent)
    assert.equal(client.signedFetch, signedFetch)
    assert.equal(testing.testAgent, testAgent)
    console.log('same')`,
  )
  expect((await run(process.execPath, ['former.ts'], { cwd: project })).stdout).toBe('same\n')
  await run(tsc, [], { cwd: project })
})

test('the type check finds an author’s mistake', async () => {
  writeFileSync(
    path.join(project, 'mistake.ts'),
    `import { defineAgent } from '@parley/agent'
    defineAgent({ name: 'x', description: 'x', handle: ({ files }) => { const text: string = files[0]!.bytes; return text } })`,
  )
  await expect(run(tsc, [], { cwd: project })).rejects.toMatchObject({
    stdout: expect.stringContaining('mistake.ts(2'),
  })
  rmSync(path.join(project, 'mistake.ts'))
})

test.each(names)('%s contains every file that its manifest names', (name) => {
  const manifest = readJson(path.join(modules, name, 'package.json'))
  const { exports, imports, bin, version, dependencies } = manifest
  const named = JSON.stringify([exports, imports, bin]).match(
    /[\w./*-]+(\.(d\.ts|m?js|json)|\/\*)(?="(?!:))/g,
  )
  expect(named).not.toEqual([])
  expect(
    named?.filter(
      (file) => globSync(file.replace('*', '**/*'), { cwd: path.join(modules, name) }).length === 0,
    ),
  ).toEqual([])
  expect(manifest).not.toHaveProperty('private')
  expect(manifest).not.toHaveProperty('devDependencies')
  expect(readdirSync(path.join(modules, name))).toEqual(
    expect.arrayContaining(['README.md', 'LICENSE', 'CHANGELOG.md']),
  )
  const others = Object.entries(dependencies ?? {}).filter(([dependency]) => names.includes(dependency))
  expect(others.filter(([, wanted]) => wanted !== version)).toEqual([])
})

test('the packages contain all assets, and no sources, tests or test vectors', () => {
  for (const source of published) {
    const packed = globSync('**/*', { cwd: path.join(modules, nameOf(source)) })
    expect(
      packed.filter((name) => /(?<!\.d)\.ts$|\.(test|cases)\.|(^|\/)vectors(\/|$)|^training\//.test(name)),
    ).toEqual([])
    const assets = globSync('**/*.*', { cwd: path.join(root, source) }).filter(
      (name) => !/\.ts$|(^|\/)vectors(\/|$)|^training\/|^tsconfig\.json$|^node_modules(\/|$)/.test(name),
    )
    expect(assets.filter((name) => !packed.includes(name))).toEqual([])
  }
  // Test helpers stay in the repository, except the one for authors and its identity provider.
  const testing = packedFiles('**/testing{,/*}.js').map((file) => path.relative(modules, file))
  expect(testing.sort()).toEqual([
    '@parley/agent/testing.js',
    '@parley/agent/testing/identity-provider.js',
    'parley/compat/testing.js',
  ])
})

test('the packages contain no path of the machine that packed them', () => {
  const here = [root, os.homedir(), os.tmpdir()]
    .filter((name) => name.length > 1)
    .map((name) => `${name}${path.sep}`)
  const naming = packedFiles('**/*.{js,mjs,d.ts,json}').filter((file) => {
    const text = readFileSync(file, 'utf8')
    return here.some((folderName) => text.includes(folderName))
  })
  expect(naming).toEqual([])
})

const imports =
  /^(?:import\s[^'"(]*|export (?:\*|\{[^}]*\})[^'"{]*from )['"]([^'"]+)['"]|(?:\bimport|\bnew URL(?=\([^()]*import\.meta\.url)|\bimport\.meta\.resolve)\(\s*['"]([^'"]+)['"]/gm

test('every import of the packages resolves, and only to declared dependencies', () => {
  const missing: string[] = []
  for (const name of names) {
    const { dependencies, optionalDependencies } = readJson(path.join(modules, name, 'package.json'))
    const allowed = [name, ...[dependencies, optionalDependencies].flatMap((all) => Object.keys(all ?? {}))]
    for (const file of globSync('**/*.js', { cwd: path.join(modules, name) })) {
      // Its imports are part of the generated agents.
      if (file === 'scaffold/templates.js') continue
      const absolute = path.join(modules, name, file)
      // A comment may name the declarations of a type, which are not packed with pages.
      const code = readFileSync(absolute, 'utf8').replaceAll(/\/\*\*\s.*?\*\//gs, '')
      for (const [, statement, call] of code.matchAll(imports))
        if (!resolves(absolute, statement ?? call ?? '', allowed))
          missing.push(`${name}/${file} → ${statement ?? call}`)
    }
  }
  expect(missing).toEqual([])
})

function resolves(file: string, specifier: string, allowed: string[]): boolean {
  if (/^(node:|https?:|#)/.test(specifier)) return true
  if (specifier.startsWith('.')) return existsSync(path.join(path.dirname(file), specifier))
  const name = /^(@[^/]+\/)?[^/]+/.exec(specifier)?.[0] ?? ''
  if (!allowed.includes(name)) return false
  if (names.includes(name)) createRequire(file).resolve(specifier)
  return true
}
