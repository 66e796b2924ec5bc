import { randomBytes } from 'node:crypto'
import { access, readdir } from 'node:fs/promises'
import path from 'node:path'
import { loadAgent } from '@parley/agent/internal/author/load-agent'
import { agentIdentity, gatewayIdentity, type Identity } from '@parley/kit/did/identity'
import { retireOldKeys, rotateKeys } from '@parley/kit/did/key-file'
import { gatewaySettings } from '@parley/kit/process/settings'
import { clientSettings } from '../server/environment.ts'
import { keysOf, nextGatewayKey, retireGatewayKeys } from '../server/gateway-keys.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { oneLine, slugMax } from '../terminal/printable.ts'

interface DidOptions {
  gateway?: true
  author?: string
  name?: string
  json?: true
}

export default function didCommand(io: Io): CliCommand {
  return new CliCommand('did')
    .argument('[action]', 'show, new, rotate or retire', 'show')
    .argument('[agent]', 'for show, rotate and retire: name of the agent’s folder in ./agents')
    .option(
      '--gateway',
      'with new, rotate and retire: print the settings of the gateway’s identity, for .env',
    )
    .option('--author <author>', 'with new: operator of the gateway', 'parley')
    .option('--name <name>', 'with new: name of the gateway', 'gateway')
    .option('--json', 'print the result as JSON')
    .addHelpText(
      'after',
      `
show [agent]    the DIDs of the gateway and of the agents of this folder, with their keys
new --gateway   creates a seed with author and name; the same three settings give the same DID everywhere, and another
                seed gives another DID
rotate <agent>  adds a key that signs after the agent’s next start; the document lists the old and the new key
retire <agent>  removes the old keys from the document and deletes them
rotate --gateway, retire --gateway
                print the settings that replace those in .env; the DID does not change. With several gateways, deploy
                the new SERVICE_GATEWAY_DID_KEYS to all of them first, with the old seed, and then the new seed`,
    )
    .run((action: string, agent: string | undefined, options: DidOptions) => {
      if (action === 'show') return show(io, agent, options)
      if (action === 'new') return makeGateway(io, options)
      if (action === 'rotate' || action === 'retire')
        return options.gateway
          ? changeGatewayKeys(io, action, agent, options)
          : changeKeys(io, action, agent, options)
      throw new UsageError(`"${action}" is not one of show, new, rotate, retire.`)
    })
}

async function makeGateway(io: Io, options: DidOptions): Promise<void> {
  if (!options.gateway)
    throw new UsageError(
      'An agent makes its key at its first start. For the gateway: npx parley did new --gateway',
    )
  const { author = '', name = '' } = options
  const seed = randomBytes(32)
  const { did } = identity(() => gatewayIdentity({ seed, author, name }))
  const settings = {
    SERVICE_GATEWAY_DID_SEED: seed.toString('base64'),
    SERVICE_GATEWAY_AUTHOR: author,
    SERVICE_GATEWAY_NAME: name,
  }
  if (options.json) return printJson(io, { did, ...settings })
  for (const [setting, value] of Object.entries(settings)) {
    print(io, `${setting}=${/^[\w@.+/=-]*$/.test(value) ? value : JSON.stringify(value)}\n`)
  }
  say(io, `${did}\nThe seed is the gateway’s private key: keep it as you keep a password (chmod 600 .env).`)
}

function identity(make: () => Identity): Identity {
  try {
    return make()
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

async function show(io: Io, agent: string | undefined, options: DidOptions): Promise<void> {
  const { dataDir, gatewayIdentity: settings, cardEs256 } = await didSettings(io)
  const found: { name: string; identity: Identity }[] = []
  if (settings !== undefined) found.push({ name: 'gateway', identity: gatewayIdentity(settings) })
  for (const name of await agentNames(io.cwd)) {
    const file = await keyFileOf(dataDir, name, io.cwd)
    if (file === undefined) continue
    const { author } = await loadAgent(path.join(io.cwd, 'agents', name))
    found.push({ name, identity: await agentIdentity(author, file, { cardEs256 }) })
  }
  const shown = agent === undefined ? found : found.filter(({ name }) => name === agent)
  if (shown.length === 0 && agent !== undefined)
    throw new CommandFailed(
      `This folder has no identity of "${oneLine(agent, slugMax)}". For an agent in the registry: npx parley verify --agent ${oneLine(agent, slugMax)}`,
    )
  const list = shown.map((one) => ({ name: one.name, did: one.identity.did, keys: keysOf(one.identity) }))
  if (options.json) return printJson(io, list)
  if (list.length === 0) return print(io, 'No identities: an agent makes its key at its first start.\n')
  for (const { name, did, keys } of list) {
    print(io, `${name}  ${did}\n`)
    for (const { id, key, state, es256 } of keys)
      print(io, `  ${id}  ${key}  ${state}${es256 ? ', ES256' : ''}\n`)
  }
}

async function changeGatewayKeys(
  io: Io,
  action: 'rotate' | 'retire',
  agent: string | undefined,
  options: DidOptions,
): Promise<void> {
  if (agent !== undefined) throw new UsageError('Name an agent or --gateway, not both.')
  const { gatewayIdentity: settings } = await didSettings(io)
  if (settings === undefined)
    throw new CommandFailed('The gateway has no identity yet: npx parley did new --gateway')
  const changed = action === 'rotate' ? nextGatewayKey(settings) : retireGatewayKeys(settings)
  if (options.json) return printJson(io, { did: gatewayIdentity(settings).did, ...changed })
  for (const [setting, value] of Object.entries(changed)) print(io, `${setting}=${value}\n`)
  say(
    io,
    action === 'rotate'
      ? `Put them in place of those in .env and start the gateway again. With several gateways: first SERVICE_GATEWAY_DID_KEYS
everywhere, then the seed. The DID stays ${gatewayIdentity(settings).did}.`
      : 'Put it in place of that in .env and start the gateway again. The seeds of the old keys can be forgotten.',
  )
}

async function changeKeys(
  io: Io,
  action: 'rotate' | 'retire',
  agent: string | undefined,
  options: DidOptions,
): Promise<void> {
  if (agent === undefined || !/^[\w-]+$/.test(agent))
    throw new UsageError(`Name the agent: npx parley did ${action} <agent>`)
  const { dataDir } = clientSettings(io)
  const file = await keyFileOf(dataDir, agent, io.cwd)
  if (file === undefined)
    throw new CommandFailed(`${agent} has no key in ${dataDir} yet: an agent makes it at its first start.`)
  const { key, history } = await (action === 'rotate' ? rotateKeys(file) : retireOldKeys(file))
  if (options.json) return printJson(io, { agent, public_key: key.publicKeyBase58, keys: history })
  const said =
    action === 'rotate'
      ? `has a new key, signed by the one before it: ${key.publicKeyBase58}`
      : `has one key left: ${key.publicKeyBase58}`
  print(io, `${agent} ${said}\n`)
  say(io, 'Start the agent again: it reads its keys at its start.')
}

async function didSettings(io: Io) {
  const { gatewayConfig } = await import('@parley/gateway/config')
  const { dataDir } = clientSettings(io)
  // Only the identity settings are validated here, because the other gateway settings do not matter.
  const ofIdentity = Object.keys(gatewaySettings).filter((name) => name.startsWith('SERVICE_GATEWAY_'))
  const names = [...ofIdentity, 'CARD_ES256']
  const env = Object.fromEntries(names.map((name) => [name, io.env[name]]))
  const { config, secrets } = gatewayConfig(env)
  return { dataDir, gatewayIdentity: secrets.identity, cardEs256: config.cardEs256 }
}

async function agentNames(cwd: string): Promise<string[]> {
  const found = await readdir(path.join(cwd, 'agents'), { withFileTypes: true }).catch(() => [])
  return found
    .filter((one) => one.isDirectory())
    .map(({ name }) => name)
    .sort()
}

/** Returns the key file of a supervised agent or of the single agent that runs standalone in this folder. */
async function keyFileOf(dataDir: string, name: string, cwd: string): Promise<string | undefined> {
  const supervised = path.join(dataDir, 'agents', name, 'agent.key.json')
  if (await isThere(supervised)) return supervised
  const alone = path.join(dataDir, 'agent.key.json')
  const names = await agentNames(cwd)
  return names.length === 1 && names[0] === name && (await isThere(alone)) ? alone : undefined
}

function isThere(file: string): Promise<boolean> {
  return access(file).then(
    () => true,
    () => false,
  )
}
