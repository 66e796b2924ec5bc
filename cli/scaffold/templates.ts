/** What `npx parley new` writes. Every name put into a text has passed the check of the command. */

export type TestRunner = 'vitest' | 'node:test'

export const agentSource = (name: string) => `import { defineAgent } from 'parley/handler'

// Its skill stands in skills/${name}.md. Return or yield strings, objects and files; \`ask\` asks the caller back.
export default defineAgent({
  name: '${name}',
  description: 'Greets whoever tells their name',
  handle({ text, ask }) {
    const name = text.trim()
    if (name === '') return ask('What is your name?')
    return \`Hello, \${name}!\`
  },
})
`

/** In the order that formatters want. */
const testImports = (runner: TestRunner) =>
  runner === 'vitest'
    ? "import { testAgent } from 'parley/testing'\nimport { test } from 'vitest'"
    : "import { test } from 'node:test'\nimport { testAgent } from 'parley/testing'"

export const testSource = (runner: TestRunner) => `import assert from 'node:assert/strict'
${testImports(runner)}
import agent from './agent.ts'

test('greets by name', async () => {
  await using server = await testAgent(agent)
  const task = await server.caller('alice').sendAndWait('Ada')
  assert.equal(task.status.state, 'completed')
  assert.partialDeepStrictEqual(task.artifacts[0]?.parts, [{ kind: 'text', text: 'Hello, Ada!' }])
})

test('asks for a name that was not given, and goes on with the answer', async () => {
  await using server = await testAgent(agent)
  const alice = server.caller('alice')
  const asked = await alice.sendAndWait(' ')
  assert.equal(asked.status.state, 'input-required')
  const task = await alice.sendAndWait({ text: 'Ada', taskId: asked.id })
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

Greets whoever tells their name.

\`\`\`sh
npx parley up                  # runs this agent with the gateway
npx parley send ${name} "Ada"
npm test
\`\`\`

- \`agent.ts\`: what the agent does
- \`skills/${name}.md\`: what it offers, for callers and for the gateway's choice
- \`agent.test.ts\`: a test over real HTTP, the agent as callers see it
`

export const projectManifest = (name: string, parley: string) => ({
  name,
  private: true,
  ...projectFields,
  dependencies: { parley },
})

/** What a package.json needs so that agents run and are tested. */
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
