/** The files that `npx parley new` writes. The command has already validated every name. */

export type TestRunner = 'vitest' | 'node:test'

export const agentSource = (name: string) => `import { defineAgent } from '@parley/agent'

// The skill is in skills/${name}.md. Return or yield strings, objects or files; \`ask\` pauses the task with a question.
export default defineAgent({
  name: '${name}',
  description: 'Greets a person by name',
  handle({ text, ask }) {
    const name = text.trim()
    if (name === '') return ask('What is your name?')
    return \`Hello, \${name}!\`
  },
})
`

/** The imports in the order that import formatters produce. */
const testImports = (runner: TestRunner) =>
  runner === 'vitest'
    ? "import { testAgent } from '@parley/agent/testing'\nimport { test } from 'vitest'"
    : "import { test } from 'node:test'\nimport { testAgent } from '@parley/agent/testing'"

export const testSource = (runner: TestRunner) => `import assert from 'node:assert/strict'
${testImports(runner)}
import agent from './agent.ts'

test('greets by name', async () => {
  await using server = await testAgent(agent)
  const task = await server.caller('alice').sendAndWait('Ada')
  assert.equal(task.status.state, 'completed')
  assert.partialDeepStrictEqual(task.artifacts[0]?.parts, [{ kind: 'text', text: 'Hello, Ada!' }])
})

test('asks for a missing name and continues with the answer', async () => {
  await using server = await testAgent(agent)
  const alice = server.caller('alice')
  const paused = await alice.sendAndWait(' ')
  assert.equal(paused.status.state, 'input-required')
  const task = await alice.sendAndWait({ text: 'Ada', taskId: paused.id })
  assert.equal(task.status.state, 'completed')
})
`

export const skillSource = (name: string) => `---
id: ${name}
name: Greet
description: Greets a person by name
tags: [greeting]
input_modes: [text/plain]
output_modes: [text/plain]
examples:
  - Ada
---

# Greet

Send a name; the answer is a greeting. Without a name the agent asks for it.
`

export const readmeSource = (name: string) => `# ${name}

Greets a person by name.

\`\`\`sh
npx parley up                  # runs this agent with the gateway
npx parley send ${name} "Ada"
npm test
\`\`\`

- \`agent.ts\`: what the agent does
- \`skills/${name}.md\`: its skill, for callers and for the routing of the gateway
- \`agent.test.ts\`: a test over HTTP, as a caller sees the agent
`

export const projectManifest = (name: string, dependencies: Record<string, string>) => ({
  name,
  private: true,
  ...projectFields,
  dependencies,
})

/** The fields that package.json needs for running and testing agents. */
export const projectFields = {
  type: 'module',
  scripts: { start: 'parley up', test: 'node --test "agents/**/*.test.ts"' },
}

export const tsconfig = {
  compilerOptions: {
    target: 'es2024',
    lib: ['es2024', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    erasableSyntaxOnly: true,
    verbatimModuleSyntax: true,
    allowImportingTsExtensions: true,
    skipLibCheck: true,
    noEmit: true,
  },
  include: ['agents'],
}

export const gitignore = 'node_modules/\n.parley/\nparley-downloads/\n.env\n'
