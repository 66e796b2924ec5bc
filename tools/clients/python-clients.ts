import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { isInstalled, type PythonEnvironment, pythonOf } from '../testing/python.ts'
import type { ClientStep, TestedClient } from './step.ts'

/** PyPI `openai`, Apache-2.0. Suites that need it contain `(needs openai-python)` in their titles. */
export const openaiPython: PythonEnvironment = {
  name: 'openai-3.54.0',
  packages: ['openai==3.54.0'],
  size: '60 MB',
}

/** PyPI `mcp`, MIT. Suites that need it contain `(needs mcp-python)` in their titles. */
export const mcpPython: PythonEnvironment = { name: 'mcp-2.3.0', packages: ['mcp==2.3.0'], size: '60 MB' }

export const openaiPythonIsThere = () => isInstalled(openaiPython)
export const mcpPythonIsThere = () => isInstalled(mcpPython)

/** A step of python_client.py. */
const step = (python: PythonEnvironment, name: string, id: string): ClientStep => ({
  name,
  run: async ({ gateway, token }) => {
    const program = path.join(import.meta.dirname, 'python_client.py')
    await promisify(execFile)(pythonOf(python), [program, id, gateway, token])
  },
})

export const openaiPythonClient: TestedClient = {
  name: 'openai 3.54 (PyPI)',
  steps: [
    step(openaiPython, 'models', 'models'),
    step(openaiPython, 'chat', 'chat'),
    step(openaiPython, 'chat, streamed, with auto', 'stream'),
    step(openaiPython, 'file in', 'file'),
    step(openaiPython, 'responses', 'responses'),
    step(openaiPython, 'unknown model, missing credentials', 'errors'),
  ],
}

export const mcpPythonClient: TestedClient = {
  name: 'mcp 2.3 (PyPI)',
  steps: [step(mcpPython, 'list of tools, call', 'mcp')],
}
