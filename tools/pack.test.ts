import { execFile } from 'node:child_process'
import { existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { pack } from './pack.ts'
import { unpackInto } from './unpack.ts'

const run = promisify(execFile)
const root = path.dirname(import.meta.dirname)
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-pack-'))
const project = path.join(folder, 'project')
const inPackage = (...names: string[]) => path.join(project, 'node_modules', 'parley', ...names)

beforeAll(() => {
  mkdirSync(project)
  unpackInto(project, pack(path.join(folder, 'build'), folder))
  writeFileSync(path.join(project, 'package.json'), '{"type": "module"}')
  const options = { strict: true, noEmit: true, module: 'nodenext', target: 'es2024', skipLibCheck: true }
  writeFileSync(path.join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }))
})
afterAll(() => rmSync(folder, { recursive: true }))

test('an author’s agent.ts outside of the clone runs and passes the type check against the package', async () => {
  writeFileSync(
    path.join(project, 'agent.ts'),
    `import { defineAgent, file } from 'parley/handler'
    const agent = defineAgent({
      name: 'hello',
      description: 'Greets',
      skills: [{ id: 'greet', name: 'Greet', description: 'Greets by name' }],
      handle: ({ text, files }) => file(text, 'text/plain', files[0]?.bytes ?? 'nobody'),
    })
    export default agent
    console.log(agent.name)`,
  )
  expect((await run(process.execPath, ['agent.ts'], { cwd: project })).stdout).toBe('hello\n')
  await run(path.join(root, 'node_modules', '.bin', 'tsc'), [], { cwd: project })
})

test('the declarations are real: a mistake of an author is found by the type check', async () => {
  writeFileSync(
    path.join(project, 'mistake.ts'),
    `import { defineAgent } from 'parley/handler'
    defineAgent({ name: 'x', description: 'x', handle: ({ files }) => { const text: string = files[0]!.bytes; return text } })`,
  )
  const checked = run(path.join(root, 'node_modules', '.bin', 'tsc'), [], { cwd: project })
  await expect(checked).rejects.toMatchObject({ stdout: expect.stringContaining('mistake.ts(2') })
  rmSync(path.join(project, 'mistake.ts'))
})

test('every file that the package’s manifest names is in it', () => {
  const manifest = JSON.parse(readFileSync(inPackage('package.json'), 'utf8')) as Record<string, unknown>
  const named = JSON.stringify([manifest.exports, manifest.imports, manifest.bin]).match(
    /[\w./-]+\.(d\.ts|m?js)/g,
  )
  expect(named).not.toEqual([])
  expect(named?.filter((name) => !existsSync(inPackage(name)))).toEqual([])
  expect(manifest).not.toHaveProperty('private')
  expect(manifest).not.toHaveProperty('devDependencies')
})

test('the package holds no sources, no tests and their vectors, and every asset', () => {
  const packed = globSync('**/*', { cwd: inPackage() })
  expect(packed.filter((name) => /(?<!\.d)\.ts$|\.(test|cases)\./.test(name))).toEqual([])
  const assets = globSync('{shared,gateway,agents,cli}/**/*.*', { cwd: root }).filter(
    (name) => !name.endsWith('.ts') && !/\/vectors\/|^shared\/testing\//.test(name),
  )
  expect(assets.filter((name) => !packed.includes(name))).toEqual([])
  // Of the programs for tests, those that authors test with.
  const testing = packed.filter((name) => name.startsWith('shared/testing/') && !name.endsWith('.d.ts'))
  expect(testing.sort()).toEqual(['shared/testing/identity-provider.js', 'shared/testing/test-agent.js'])
})

test('the package names no folder of the machine that packed it', () => {
  const here = [root, os.homedir(), os.tmpdir()]
    .filter((name) => name.length > 1)
    .map((name) => `${name}${path.sep}`)
  const texts = globSync('**/*.{js,mjs,d.ts,json}', { cwd: inPackage() })
  const naming = texts.filter((name) => {
    const text = readFileSync(inPackage(name), 'utf8')
    return here.some((folderName) => text.includes(folderName))
  })
  expect(naming).toEqual([])
})

test('every module of the package finds what it imports', async () => {
  const modules = globSync('{shared,gateway,agents,cli}/**/*.js', { cwd: inPackage() })
  const missing: string[] = []
  for (const name of modules) {
    const text = readFileSync(inPackage(name), 'utf8')
    const imports = text.matchAll(
      /(?:\bfrom|\bimport\(?|new URL\()\s*['"](\.{1,2}\/[^'"]+\.(?:m?js|json|md))['"]/g,
    )
    for (const [, to = ''] of imports) {
      if (!existsSync(path.join(path.dirname(inPackage(name)), to))) missing.push(`${name} → ${to}`)
    }
  }
  expect(missing).toEqual([])
})
