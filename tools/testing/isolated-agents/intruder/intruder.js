import { defineAgent } from '@parley/agent'
import { connect, exhaust, tryAll } from './attempts.js'
import { tryDatabases } from './databases.js'

/** What the gateway has sent to this process. */
const received = []
process.on('message', (message) => received.push(message))

/** An agent of a hostile author. The text of a message is JSON and selects what it does. */
export const agentOf = (name) =>
  defineAgent({
    name,
    description: `Tries what an isolated agent must not be able to do (${name})`,
    skills: [
      {
        id: name,
        name,
        description: name,
        tags: [name],
        inputModes: ['text/plain'],
        outputModes: ['text/plain'],
      },
    ],
    async handle({ text }) {
      const { what, target } = JSON.parse(text)
      if (what === 'try') return JSON.stringify(await tryAll(target))
      if (what === 'databases') return JSON.stringify(await tryDatabases(target, received))
      if (what === 'connect') return JSON.stringify(await connect(target))
      if (what === 'flood') return flood()
      return JSON.stringify(await exhaust[what]())
    },
  })

/** Sends messages to the supervisor that it did not ask for. */
function flood() {
  process.send({ type: 'ready', url: 'http://127.0.0.1:1', card: { name: 'forged' } })
  process.send({ cmd: 'NODE_HANDLE', type: 'net.Socket' })
  for (let i = 0; i < 1000; i += 1) process.send({ type: 'noise', i })
  return 'sent'
}
