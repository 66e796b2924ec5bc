import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { pythonOf } from '../testing/python.ts'
import { a2aSdk } from './python.ts'

const root = path.resolve(import.meta.dirname, '..', '..')
const run = promisify(execFile)

/** The packages that the guide installs: an interpreter, or a package of this project under another name. */
const environments = {
  'a2a-sdk==1.3.0': { python: a2aSdk.v1 },
  'a2a-sdk==0.3.26': { python: a2aSdk.v03 },
  '@a2a-js/sdk@1.3': { sdk: '@a2a-js/sdk' },
  '@a2a-js/sdk@0.3.14': { sdk: 'a2a-js-0.3' },
} as const

export type GuidePackage = keyof typeof environments

/** Returns the program for a package in docs/guides/a2a.md, and the name of its file. */
async function programFor(name: GuidePackage): Promise<{ file: string; code: string }> {
  const guide = await readFile(path.join(root, 'docs', 'guides', 'a2a.md'), 'utf8')
  for (const [, installed, file = '', code = ''] of guide.matchAll(
    /^`(?:pip|npm) install (\S+)`, and `([\w.]+)`:\n\n```\w+\n(.*?)^```/gms,
  ))
    if (installed === name) return { file, code }
  throw new Error(`The guide has no program for ${name}`)
}

/** Runs the program of the guide, unchanged, and returns what it prints. */
export async function runGuide(
  name: GuidePackage,
  { address, token, text }: { address: string; token: string; text: string },
): Promise<string> {
  const { file, code } = await programFor(name)
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-guide-'))
  try {
    const program = path.join(folder, file)
    await writeFile(program, code)
    const environment = environments[name]
    if ('sdk' in environment) {
      await mkdir(path.join(folder, 'node_modules', '@a2a-js'), { recursive: true })
      await symlink(
        path.join(root, 'node_modules', environment.sdk),
        path.join(folder, 'node_modules', '@a2a-js', 'sdk'),
      )
    }
    const command = 'sdk' in environment ? process.execPath : pythonOf(environment.python)
    const env = { PATH: process.env['PATH'], TOKEN: token }
    const { stdout } = await run(command, [program, address, text], { env, timeout: 60_000 })
    return stdout
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
