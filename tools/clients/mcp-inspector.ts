import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { isInstalled, type NodePackage, packageFolder } from '../testing/node-packages.ts'
import type { ClientStep, ClientTarget, TestedClient } from './step.ts'

/** npm `@modelcontextprotocol/inspector`, MIT. It is too large for the development dependencies. */
export const inspector: NodePackage = {
  name: '@modelcontextprotocol/inspector',
  version: '2.12.0',
  size: '110 MB',
}

/** Suites that need it contain `(needs mcp-inspector)` in their titles. */
export const inspectorIsThere = () => isInstalled(inspector)

/** Runs the command line of the inspector. @throws Error with its output if its exit code is not 0 */
async function inspect({ gateway, token }: ClientTarget, era: string, args: string[]): Promise<string> {
  const program = path.join(packageFolder(inspector), 'clients', 'launcher', 'build', 'index.js')
  const target = ['--cli', '--server-url', `${gateway}mcp`, '--transport', 'http', '--protocol-era', era]
  const header = ['--header', `Authorization: Bearer ${token}`]
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...target, ...header, ...args])
  return stdout
}

const stepsIn = (era: 'modern' | 'legacy'): ClientStep[] => [
  {
    name: 'list of tools, schemas checked',
    run: async (target) => {
      assert.match(
        await inspect(target, era, ['--method', 'tools/list', '--strict']),
        /calculator__calculate/,
      )
    },
  },
  {
    name: 'call',
    run: async (target) => {
      const call = [
        '--method',
        'tools/call',
        '--tool-name',
        'calculator__calculate',
        '--tool-arg',
        'text=6*7',
      ]
      assert.match(await inspect(target, era, call), /42/)
    },
  },
  {
    name: 'resource templates',
    run: async (target) => {
      assert.match(await inspect(target, era, ['--method', 'resources/templates/list']), /uriTemplate/)
    },
  },
]

export const inspectorClients: readonly TestedClient[] = [
  { name: 'inspector 2.12, 2026-07-28', steps: stepsIn('modern') },
  { name: 'inspector 2.12, 2025-11-25', steps: stepsIn('legacy') },
]
