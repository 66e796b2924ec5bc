import { mkdir, readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { RpcError } from '@parley/client/internal/rpc-error'
import { verifyDocument } from '@parley/kit/did/document'
import { verifyParts } from '@parley/kit/did/part-signature'
import type { WireTask } from '@parley/wire/codecs/parley/shapes'
import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import {
  connect,
  type ServerConnection,
  type ServerOptions,
  slugOf,
  withServerOptions,
} from '../server/server-connection.ts'
import { checkCard } from '../server/verify-card.ts'
import { didIn, type Evidence, type Step, verifyEntry } from '../server/verify-entry.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

interface VerifyOptions extends ServerOptions {
  agent?: string
  from?: string
  save?: string
  card?: string
  json?: true
}

const files = {
  entry: 'entry.json',
  gateway: 'gateway.json',
  agent: 'agent.json',
  task: 'task.json',
} as const

export default function verifyCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('verify'))
    .argument('[task]', 'id of a task: its artifacts are verified too')
    .option('--agent <agent>', 'name of the agent')
    .option('--save <folder>', 'save the verified documents to this folder')
    .option('--from <folder>', 'verify the files of such a folder offline')
    .option('--card <url>', 'verify only the signature of the card at this address, or of the agent there')
    .option('--json', 'print the steps as JSON')
    .addHelpText(
      'after',
      `
Verifies the registry entry against the DID documents of gateway and agent and, with a task, the signature on every part
of its artifacts. Compare the DID of the gateway with the one you expect: the command cannot know it.

With --card, verifies the signature of an A2A card with the DID document of the key that signed it, and shows who vouches.
Compare the DID with the one you expect, too.

Exit codes: 0 every step passed; 1 a step failed, with the reason; 2 incorrect usage.`,
    )
    .run((task: string | undefined, options: VerifyOptions) => verify(io, task, options))
}

async function verify(io: Io, taskId: string | undefined, options: VerifyOptions): Promise<number> {
  if (options.card !== undefined) return verifyCard(io, options.card, { ...options, taskId })
  if (options.from === undefined && options.agent === undefined)
    throw new UsageError(
      'Name the agent with --agent, a folder of saved files with --from, or the address of a card with --card.',
    )
  const seen =
    options.from === undefined
      ? await ask(io, taskId, options)
      : await readSaved(path.resolve(io.cwd, options.from))
  if (options.save !== undefined) await save(path.resolve(io.cwd, options.save), seen)
  const steps = await verifyEntry(seen)
  steps.push(...askedSteps(seen, { slug: options.agent, taskId }))
  if (seen.task !== undefined) steps.push(...taskSteps(seen.task, seen))
  if (options.json) printJson(io, { gateway: seen.gateway['id'], agent: seen.entry['did'], steps })
  else {
    print(io, `gateway  ${oneLine(didIn(seen.gateway, 'id') ?? 'no DID')}\n`)
    print(io, `agent    ${oneLine(didIn(seen.entry, 'did') ?? 'no DID')}\n`)
    for (const { step, fault } of steps)
      print(io, `${fault === undefined ? 'ok  ' : 'NO  '}  ${lineOf(step, fault)}\n`)
  }
  return steps.every(({ fault }) => fault === undefined) ? 0 : 1
}

async function verifyCard(
  io: Io,
  url: string,
  { agent, from, save: folder, json, taskId }: VerifyOptions & { taskId: string | undefined },
): Promise<number> {
  if ([agent, from, folder, taskId].some((one) => one !== undefined))
    throw new UsageError('--card verifies a card only: leave out the task, --agent, --from and --save.')
  const card = await checkCard(url)
  const { fault, signedBy, covers, vouched } = card
  if (json) printJson(io, card)
  else {
    print(io, `card     ${oneLine(`${card.name} (${card.url})`, 400)}\n`)
    if (signedBy !== undefined) print(io, `signed   ${oneLine(signedBy, 400)}\n`)
    if (covers !== undefined) print(io, `covers   ${coverages[covers] ?? covers}\n`)
    if (vouched !== undefined)
      for (const [name, value] of vouchedRows(vouched))
        print(
          io,
          `${name.padEnd(8)} ${oneLine(value, 400)}
`,
        )
    const step = 'the card is signed with a key that speaks for its address'
    print(io, `${fault === undefined ? 'ok  ' : 'NO  '}  ${lineOf(step, fault)}\n`)
  }
  return fault === undefined ? 0 : 1
}

const coverages: Record<string, string> = {
  card: 'every field',
  a2a: 'the fields of A2A 1.0 only',
  'a2a-without-security': 'the fields of A2A 1.0 without the security schemes',
  'a2a-v03': 'the fields of A2A 0.3 only',
}

/** Describes what the gateway states about the agent, of which the signature of the card is the proof. */
function vouchedRows({ gateway, did, verified, original }: JsonObject): [string, string][] {
  const { sha256, signature } = isJsonObject(original) ? original : {}
  const { kid, reason, ...signed } = isJsonObject(signature) ? signature : {}
  const of = `SHA-256 ${textOr('unknown', sha256)}`
  return [
    ['gateway', textOr('no identity, so that it signs no cards (npx parley did new --gateway)', gateway)],
    ['agent', `${textOr('no DID', did)}, ${verified === true ? '' : 'not '}verified by the gateway`],
    [
      'original',
      signed['verified'] === true
        ? `${of}, signed by ${textOr('an unknown key', kid)}`
        : `${of}, without a valid signature (${textOr('unchecked', reason)})`,
    ],
  ]
}

const textOr = (absent: string, value: unknown) => (typeof value === 'string' ? value : absent)

const lineOf = (step: string, fault: string | undefined) =>
  oneLine(fault === undefined ? step : `${step}: ${fault}`, 400)

type Seen = Evidence & { task?: WireTask }

async function ask(io: Io, taskId: string | undefined, options: VerifyOptions): Promise<Seen> {
  const slug = slugOf(options.agent ?? '')
  const server = await connect(io, options)
  const entry = await get(server, `/registry/agents/${slug}`)
  const gateway = await gatewayDocument(server)
  const did = entry['did']
  // The document comes from the agent itself, because the gateway only forwards it.
  const agent =
    typeof did === 'string'
      ? await get(server, `/agents/${slug}/did/resolve?did=${encodeURIComponent(did)}`)
      : undefined
  const task = taskId === undefined ? undefined : await server.agent(slug).get(taskId)
  return { entry, gateway, ...(agent && { agent }), ...(task && { task }) }
}

async function gatewayDocument(server: ServerConnection): Promise<JsonObject> {
  try {
    return await get(server, '/.well-known/did.json')
  } catch (error) {
    if (!(error instanceof RpcError) || error.status !== 404) throw error
    throw new CommandFailed(
      'The gateway has no identity, so that it vouches for no agent. The operator creates one with npx parley did new --gateway >> .env and restarts the gateway.',
    )
  }
}

async function get(server: ServerConnection, path: string): Promise<JsonObject> {
  return (await server.getJson(path)).body as JsonObject
}

/** Checks that the entry and the task are the requested ones, because another agent's would be consistent, too. */
function askedSteps(
  { entry, task }: Seen,
  { slug, taskId }: { slug: string | undefined; taskId: string | undefined },
): Step[] {
  const steps: Step[] = []
  if (slug !== undefined) {
    // The address is trustworthy because the proof covers it.
    const url = typeof entry['url'] === 'string' ? entry['url'] : ''
    const step = 'the entry belongs to the requested agent'
    steps.push({ step, ...(!url.endsWith(`/agents/${slug}`) && { fault: `It is that of ${url}.` }) })
  }
  if (taskId !== undefined) {
    const id = task === undefined ? undefined : (task as { id: unknown }).id
    const isIt = typeof id === 'string' && id.toLowerCase() === taskId.toLowerCase()
    const fault = task === undefined ? 'There is none.' : 'It is another.'
    steps.push({ step: 'the task is the requested one', ...(!isIt && { fault }) })
  }
  return steps
}

function taskSteps(task: WireTask, { agent, entry }: Seen): Step[] {
  const step = (artifact: string, part: number) =>
    `artifact “${artifact}”, part ${part + 1}, is signed by the agent`
  try {
    const keys = verifyDocument(agent, didIn(entry, 'did') ?? '')
    const verdicts = verifyParts(task as never, keys)
    if (verdicts.length === 0)
      return [{ step: 'the task has artifacts', fault: 'The task has no artifacts.' }]
    return verdicts.map(({ artifact, part, verdict }) => ({
      step: step(artifact, part),
      ...(verdict !== 'verified' && { fault: verdict }),
    }))
  } catch (error) {
    return [{ step: 'the parts of the task are signed by the agent', fault: (error as Error).message }]
  }
}

async function save(folder: string, seen: Seen): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const [name, file] of Object.entries(files)) {
    const value = seen[name as keyof Seen]
    if (value !== undefined) await writeFile(path.join(folder, file), `${JSON.stringify(value, null, 2)}\n`)
  }
}

async function readSaved(folder: string): Promise<Seen> {
  const [entry, gateway] = [await saved(folder, files.entry), await saved(folder, files.gateway)]
  if (entry === undefined || gateway === undefined)
    throw new CommandFailed(`${folder} must hold ${files.entry} and ${files.gateway}.`)
  const [agent, task] = [await saved(folder, files.agent), await saved(folder, files.task)]
  return { entry, gateway, ...(agent && { agent }), ...(task && { task: task as unknown as WireTask }) }
}

async function saved(folder: string, name: string): Promise<JsonObject | undefined> {
  const file = path.join(folder, name)
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw new CommandFailed(`${file} cannot be read (${error.code}).`)
  })
  if (text === undefined) return undefined
  const value = jsonObjectOf(text)
  if (value === undefined) throw new CommandFailed(`${file} holds no JSON object.`)
  return value
}
