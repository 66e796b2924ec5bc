import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { ConfigError } from '@parley/kit/process/settings'
import { executionCost } from '@parley/wire/model/price'
import { parse } from 'yaml'
import { z } from 'zod'

/** The name of the file. */
export const manifestFile = 'agent.yaml'
const manifestMaxBytes = 256 * 1024

const line = (max: number) => z.string().trim().min(1).max(max)
const words = z.array(z.string().max(1000)).max(500)

const command = z.strictObject({
  /** The program; `node` is the Node.js of Parley, and names that begin with a dot are relative to the folder. */
  command: line(4096),
  args: z.array(z.string().max(32_768)).max(200).default([]),
  /** Variables of the program, which receives no others than PATH, HOME, LANG and the like. */
  env: z.record(z.string().regex(/^[A-Za-z_]\w{0,127}$/), z.coerce.string().max(32_768)).default({}),
  /** Default: the folder of the agent. */
  cwd: line(4096).optional(),
})
const server = z.strictObject({
  /** The endpoint of a server (Streamable HTTP). */
  url: z.url({ protocol: /^https?$/, error: 'must be an http or https address' }),
  /** A credential, sent as a bearer token or in the header. */
  token: line(16_384).optional(),
  header: z
    .string()
    .regex(/^[\w!#$%&'*+.^`|~-]{1,256}$/)
    .optional(),
})

const skill = z.strictObject({
  /** The name of the tool at the server. */
  tool: line(128),
  id: z
    .string()
    .regex(/^[\w.-]{1,128}$/, 'may contain only letters, digits, _, . and -')
    .optional(),
  name: line(200).optional(),
  description: line(5000).optional(),
  tags: words.optional(),
  examples: words.optional(),
  price: executionCost,
})

const manifest = z.strictObject({
  name: line(128),
  description: line(5000),
  version: line(50).default('1.0.0'),
  author: line(128).default('parley'),
  /** How messages are handled: exactly one kind. */
  handler: z.strictObject({
    mcp: z.union([command, server], {
      error: 'must have either command (with args, env, cwd) or url (with token, header)',
    }),
  }),
  /** The tools that are offered. Default: all. */
  skills: z.array(skill).min(1).max(1000).optional(),
  price: executionCost,
  /** The fields of settings.json, which the gateway reads. */
  settings: z.record(z.string(), z.unknown()).default({}),
})
export type Manifest = z.infer<typeof manifest>
export type ManifestSkill = z.infer<typeof skill>

/**
 * Reads the manifest in a folder. Returns undefined if there is none.
 * @throws ConfigError with a sentence for each fault, which names the field
 */
export async function readManifest(folder: string): Promise<Manifest | undefined> {
  const text = await readFile(path.join(folder, manifestFile), 'utf8').catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return undefined
      throw error
    },
  )
  return text === undefined ? undefined : parseManifest(text)
}

/** @throws ConfigError */
export function parseManifest(text: string): Manifest {
  if (Buffer.byteLength(text) > manifestMaxBytes) throw fault(`is larger than ${manifestMaxBytes} bytes`)
  const read = manifest.safeParse(yamlIn(text))
  if (!read.success) throw new ConfigError(sentencesFor(read.error.issues))
  const ids = read.data.skills?.map(({ id, tool }) => id ?? tool) ?? []
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice !== undefined)
    throw fault(`skills: the ID ${twice} appears twice. Give one of the skills another id`)
  return read.data
}

/** Returns the names of the variables in the values of the handler, which the agent receives. */
export function variablesIn({ handler: { mcp } }: Manifest): string[] {
  const texts = 'url' in mcp ? [mcp.token ?? ''] : [...mcp.args, ...Object.values(mcp.env)]
  const names = texts.flatMap((text) => [...text.matchAll(variable)].map(([, name = '']) => name))
  return [...new Set(names)]
}

const variable = /\$\{([A-Za-z_]\w*)\}/g

/** Replaces `${NAME}` with the variable. @throws ConfigError for a variable that is not set */
export function expanded(text: string, variables: NodeJS.ProcessEnv): string {
  return text.replace(variable, (_all, name: string) => {
    const value = variables[name]
    if (value === undefined)
      throw fault(
        `the variable ${name} is not set. Set it in the environment of the gateway or of npx parley agent`,
      )
    return value
  })
}

function yamlIn(text: string): unknown {
  try {
    // Aliases could expand to a document of any size.
    return parse(text, { maxAliasCount: 0 })
  } catch (error) {
    const [reason = ''] = error instanceof Error ? error.message.split('\n') : []
    throw fault(`is not valid YAML: ${reason.replace(/[:.]+$/, '')}`)
  }
}

const fault = (text: string) => new ConfigError([`${manifestFile} ${text}.`])

/** A handler of another kind lacks the field `mcp`, which is not a fault in addition. */
function sentencesFor(issues: readonly z.core.$ZodIssue[]): string[] {
  const isOtherKind = issues.some(
    ({ code, path: at }) => code === 'unrecognized_keys' && at.join('.') === 'handler',
  )
  return issues
    .filter(({ path: at }) => !(isOtherKind && at.join('.') === 'handler.mcp'))
    .flatMap(sentencesOf)
}

function sentencesOf(issue: z.core.$ZodIssue): string[] {
  const at = issue.path.join('.')
  const where = at === '' ? manifestFile : `${manifestFile}: ${at}`
  const unknownField = (key: string) =>
    `${where} has the unknown field ${JSON.stringify(key)}. docs/guides/agent-manifest.md lists the fields.`
  if (issue.code === 'unrecognized_keys') {
    const isHandler = at === 'handler'
    return issue.keys.map((key) =>
      isHandler
        ? `${where} has the kind ${JSON.stringify(key)}, which this version does not support. Use mcp.`
        : unknownField(key),
    )
  }
  if (issue.code === 'invalid_union') {
    // The issues of the variant that the author meant.
    const meant = issue.errors.find((errors) =>
      errors.every((one) => one.code !== 'unrecognized_keys' && !(isMissing(one) && isKind(one))),
    )
    if (meant !== undefined)
      return meant.flatMap((one) => sentencesOf({ ...one, path: [...issue.path, ...one.path] }))
    return [...unknownOf(issue.errors).map(unknownField), `${where} ${issue.message}.`]
  }
  if (isMissing(issue) && issue.code === 'invalid_type')
    return [`${where} is missing. It must be ${issue.expected === 'string' ? 'a' : 'an'} ${issue.expected}.`]
  return [`${where} ${issue.message.replace(/\.$/, '')}.`]
}

/** Returns the fields that no variant knows. */
function unknownOf(variants: readonly z.core.$ZodIssue[][]): string[] {
  const [first = [], ...others] = variants.map((issues) =>
    issues.flatMap((issue) =>
      issue.code === 'unrecognized_keys' && issue.path.length === 0 ? issue.keys : [],
    ),
  )
  return first.filter((key) => others.every((keys) => keys.includes(key)))
}

const isMissing = ({ code, message }: z.core.$ZodIssue) =>
  code === 'invalid_type' && (message.endsWith('received undefined') || !message.startsWith('Invalid input'))

/** Whether the field selects the variant of the handler. */
const isKind = ({ path: at }: z.core.$ZodIssue) => at[0] === 'command' || at[0] === 'url'
