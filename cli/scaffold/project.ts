import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { CommandFailed } from '../faults.ts'
import { isInstalled, packageName, parleySpecifier } from './specifier.ts'
import { gitignore, projectFields, projectManifest, type TestRunner, tsconfig } from './templates.ts'
import { writeNew } from './write-new.ts'

const dependencies = z.record(z.string(), z.string()).optional()
const manifestSchema = z.looseObject({
  type: z.string().optional(),
  dependencies,
  devDependencies: dependencies,
})
type Manifest = z.infer<typeof manifestSchema>

export interface Project {
  testRunner: TestRunner
  /** Files that were made, files that were added to. */
  written: string[]
  completed: string[]
  hints: string[]
}

/** Makes the working folder a project that runs agents, where it is none yet. */
export async function completeProject(cwd: string, found: Manifest | undefined): Promise<Project> {
  const file = path.join(cwd, 'package.json')
  if (found === undefined) {
    const manifest = projectManifest(packageName(cwd), parleySpecifier(cwd))
    return {
      testRunner: 'node:test',
      ...(await writeProject(cwd, manifest)),
      completed: [],
      hints: hintsFor(cwd, manifest),
    }
  }
  const bare = isBare(found)
  if (bare)
    await writeFile(file, `${JSON.stringify({ private: true, ...projectFields, ...found }, null, 2)}\n`)
  const rest = bare ? await writeProject(cwd) : { written: [] }
  const manifest = bare ? { ...projectFields, ...found } : found
  return {
    testRunner: 'vitest' in { ...found.dependencies, ...found.devDependencies } ? 'vitest' : 'node:test',
    ...rest,
    completed: bare ? [file] : [],
    hints: hintsFor(cwd, manifest),
  }
}

/** Undefined: there is none yet. @throws CommandFailed when it cannot be understood */
export async function readManifest(cwd: string): Promise<Manifest | undefined> {
  const file = path.join(cwd, 'package.json')
  const text = await readFile(file, 'utf8').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return undefined
    throw new CommandFailed(`${file} cannot be read (${thrown.code}).`)
  })
  if (text === undefined) return undefined
  try {
    return manifestSchema.parse(JSON.parse(text.replace(/^\uFEFF/, '')))
  } catch {
    throw new CommandFailed(`${file} is not a valid package.json.`)
  }
}

/** As `npm install` leaves it in an empty folder: dependencies and nothing else. */
function isBare(manifest: Manifest): boolean {
  return Object.keys(manifest).every((key) => /[dD]ependencies$/.test(key))
}

async function writeProject(cwd: string, manifest?: object): Promise<{ written: string[] }> {
  const files: [string, string | object][] = [
    ...(manifest === undefined ? [] : [['package.json', manifest] as [string, object]]),
    ['tsconfig.json', tsconfig],
    ['.gitignore', gitignore],
  ]
  const written: string[] = []
  for (const [name, content] of files) {
    if (await writeNew(path.join(cwd, name), content)) written.push(path.join(cwd, name))
  }
  return { written }
}

function hintsFor(cwd: string, manifest: Manifest): string[] {
  const hints: string[] = []
  if (manifest.type !== 'module') hints.push('Set "type": "module" in package.json: agents are ES modules.')
  const named = manifest.name === 'parley' || manifest.dependencies?.parley !== undefined
  if (!named) hints.push('parley is no dependency of this project yet: npm install parley.')
  else if (manifest.name !== 'parley' && !isInstalled(cwd))
    hints.push('Install what package.json names: npm install')
  return hints
}
