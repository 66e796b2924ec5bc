import { mkdir, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'

/** Names of the agent library in current and older checkouts, newest first. */
const libraries = ['@parley/agent', 'parley/handler']

const echo = (library: string) => `import { artifact, data, file } from ${JSON.stringify(library)}

export default {
  name: 'echo',
  description: 'Echoes a text, and does on the wire what an agent can do',
  version: '2.1.0',
  author: 'recorder',
  skills: [
    {
      id: 'echo',
      name: 'Echo',
      description: 'Echoes a text back to its sender',
      version: '1.2.0',
      tags: ['echo', 'text'],
      inputModes: ['text/plain', 'application/json'],
      outputModes: ['text/plain', 'application/json'],
      examples: ['echo hello'],
      capabilitiesDetail: { max_length: 1000 },
      performance: { avgProcessingTimeMs: 40 },
      allowedTools: ['echo-chamber'],
      assessment: { keywords: ['echo', 'repeat'], specializations: ['short texts'], antiPatterns: ['translate'] },
      documentation: '# Echo\\n\\nSend a text; it comes back.\\n',
    },
    { id: 'plain', name: 'Plain echo', description: 'Echoes without anything else', tags: ['echo'] },
  ],
  extendedCard: { description: 'Echoes a text, in detail', region: 'test' },
  async *handle({ text, data: given, history, references, ask, requireAuth, bid, decline, signal, usage, caller, files }) {
    const command = text.replace(/^echo /, '')
    const first = history.filter(({ role }) => role === 'user').length === 1
    if (command === 'data') yield data({ answer: 42, list: [1, 2.5, 'x', null, true], nested: { z: 1, a: 2 } })
    else if (command === 'file') yield file('note.txt', 'text/plain', 'a note')
    else if (command === 'artifact') yield artifact('report', 'The text.', { figure: 7 })
    else if (command === 'several') {
      yield artifact('first', 'one')
      yield artifact('second', 'two')
      yield 'and a text'
    } else if (command === 'stream') {
      for (const word of ['one ', 'two ', 'three']) {
        yield word
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    } else if (command === 'ask' && first) return yield ask('What is your name?', { field: 'name' })
    else if (command === 'auth' && first) return yield requireAuth('Sign in first.', { url: 'https://sign-in.example' })
    else if (command === 'bid' && first) return yield bid({ amount: '0.05', latencyMs: 1200, note: 'by tomorrow' })
    else if (command === 'decline') return yield decline('This is not done here.')
    else if (command === 'fail') throw new Error('the handler failed')
    else if (command === 'malformed') yield 42
    else if (command === 'nothing') return
    else if (command === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
    else if (command === 'references') yield references.map(({ state, text: earlier }) => state + ': ' + earlier).join('; ')
    else if (command === 'caller') yield data({ id: caller.id, did: caller.did ?? null, signed: caller.signed })
    else if (command === 'files') yield files.map(({ name, mimeType, text: content }) => name + ' ' + mimeType + ' ' + content).join('; ')
    else if (command === 'usage') {
      usage({ model: 'recorded', inputTokens: 3, outputTokens: 5 })
      yield 'used'
    } else yield 'echo: ' + command + (Object.keys(given).length > 0 ? ' ' + JSON.stringify(given) : '')
  },
}
`

const plain = `export default {
  name: 'plain',
  description: 'Reverses a word; has neither streams nor webhooks',
  skills: [{ id: 'reverse', name: 'Reverse', description: 'Reverses the letters of a word', tags: ['reverse'] }],
  capabilities: { streaming: false, pushNotifications: false },
  handle: ({ text }) => [...text].reverse().join(''),
}
`

const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e'
const price = `{
    amount: '0.01',
    asset: '${usdc}',
    network: 'eip155:84532',
    payTo: '0x000000000000000000000000000000000000dEaD',
    decimals: 6,
    extra: { name: 'USDC', version: '2' },
  }`

const paid = `export default {
  name: 'paid',
  description: 'Divines the weather for a price',
  skills: [
    { id: 'weather', name: 'Weather', description: 'Divines the weather of tomorrow', tags: ['weather'] },
    { id: 'dear', name: 'Dear', description: 'Divines more', tags: ['more'], executionCost: { ...${price}, amount: '0.25' } },
  ],
  executionCost: ${price},
  handle({ text, history, requirePayment }) {
    if (text === 'more' && history.filter(({ role }) => role === 'user').length === 1)
      return requirePayment({ amount: '0.02', reason: 'The long answer costs more.' })
    if (text === 'fail') throw new Error('the handler failed')
    return 'It will rain.'
  },
}
`

const strict = `export default {
  name: 'strict',
  description: 'Counts letters for callers that sign',
  skills: [{ id: 'count', name: 'Count', description: 'Counts the letters of a text', tags: ['count'] }],
  signatures: 'required',
  handle: ({ text }) => String(text.length),
}
`

export const agentNames = ['echo', 'paid', 'plain', 'strict']

/** Writes the agents of the record into a folder. They import the library of this checkout. */
export async function writeAgents(folder: string, checkout: string): Promise<void> {
  const sources = { echo: echo(libraryOf(checkout)), paid, plain, strict }
  await mkdir(folder, { recursive: true })
  await writeFile(path.join(folder, 'package.json'), '{ "type": "module" }\n')
  for (const [name, source] of Object.entries(sources)) {
    await mkdir(path.join(folder, name), { recursive: true })
    await writeFile(path.join(folder, name, 'agent.mjs'), source)
  }
}

/** @throws Error when the checkout has no library with any of the names */
function libraryOf(checkout: string): string {
  const { resolve } = createRequire(path.join(checkout, 'package.json'))
  for (const name of libraries) {
    try {
      return resolve(name)
    } catch {
      // Try the next name.
    }
  }
  throw new Error(`${checkout} contains none of these libraries: ${libraries.join(', ')}`)
}
