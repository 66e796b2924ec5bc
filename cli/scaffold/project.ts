import { access, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { CommandFailed } from '../terminal/faults.ts'
import { isInstalled, packageName, parleyDependencies, required } from './dependencies.ts'
import { gitignore, projectFields, projectManifest, type TestRunner, tsconfig } from './templates.ts'
import { writeNew } from './write-new.ts'

const dependencies = z.record(z.string(), z.string()).optional()
const manifestSchema = z.looseObject({
  type: z.string().optional(),
  main: z.string().optional(),
  scripts: dependencies,
  dependencies,
  devDependencies: dependencies,
})
type Manifest = z.infer<typeof manifestSchema>

/** The second option keeps the project's CommonJS code working. */
const moduleHint =
  'Agents are ES modules: set "type": "module" in package.json, or write agents/package.json with {"type": "module"}.'

export interface Project {
  testRunner: TestRunner
  /** Files that were created. */
  written: string[]
  /** Existing files to which missing fields were added. */
  completed: string[]
  hints: string[]
}

/** Turns the working folder into a project that runs agents, unless it is one already. */
export async function completeProject(cwd: string, found: Manifest | undefined): Promise<Project> {
  const file = path.join(cwd, 'package.json')
  if (found === undefined) {
    const manifest = projectManifest(packageName(cwd), parleyDependencies(cwd))
    return {
      testRunner: 'node:test',
      ...(await writeProject(cwd, manifest)),
      completed: [],
      hints: hintsFor(cwd, manifest),
    }
  }
  const fresh = isBare(found) || (await isOfNpmInit(cwd, found))
  const manifest = fresh
    ? { private: true, ...found, ...projectFields, ...completeDependencies(cwd, found) }
    : found
  if (fresh) await writeFile(file, `${JSON.stringify(manifest, null, 2)}\n`)
  const rest = fresh ? await writeProject(cwd) : { written: [] }
  return {
    testRunner: 'vitest' in { ...found.dependencies, ...found.devDependencies } ? 'vitest' : 'node:test',
    ...rest,
    completed: fresh ? [file] : [],
    hints: hintsFor(cwd, manifest),
  }
}

/** @returns undefined if there is no package.json. @throws CommandFailed if it cannot be read */
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

/** After `npm install parley`, also makes the library that agents import a dependency. */
function completeDependencies(
  cwd: string,
  { dependencies: found }: Manifest,
): Pick<Manifest, 'dependencies'> {
  if (found?.['parley'] === undefined) return {}
  return { dependencies: { ...parleyDependencies(cwd), ...found } }
}

/** Whether the manifest has only dependencies, as `npm install` leaves it in an empty folder. */
function isBare(manifest: Manifest): boolean {
  return Object.keys(manifest).every((key) => /[dD]ependencies$/.test(key))
}

/** Whether `npm init -y` wrote the manifest: its only script is the placeholder, and the `main` file does not exist. */
async function isOfNpmInit(cwd: string, { main = 'index.js', scripts = {} }: Manifest): Promise<boolean> {
  if (Object.keys(scripts).join() !== 'test' || !scripts['test']?.includes('no test specified')) return false
  return access(path.join(cwd, main)).then(
    () => false,
    () => true,
  )
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
  if (manifest.type !== 'module') hints.push(moduleHint)
  if (manifest.name === 'parley-workspace') return hints
  const missing = required.filter((name) => manifest.dependencies?.[name] === undefined)
  if (missing.length > 0) hints.push(`Install what the agents need: npm install ${missing.join(' ')}`)
  else if (!isInstalled(cwd)) hints.push('Install the dependencies of package.json: npm install')
  return hints
}
