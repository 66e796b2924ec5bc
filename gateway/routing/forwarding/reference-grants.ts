import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import type { CallerToken } from './caller-token.ts'

/** The request header with a grant, which only the gateways can read. */
export const referencesHeader = 'x-parley-references'

const grantContent = z.object({
  /** The caller's token. */
  token: z.string(),
  /** Id of the agent's entry. */
  agent: z.string(),
  /** Hashes of the task ids. */
  tasks: z.array(z.string()),
  /** Milliseconds since 1970. */
  until: z.number(),
})

const algorithm = 'aes-256-gcm'
const [nonceBytes, tagBytes] = [12, 16]
/** An agent reads the tasks before it accepts the message. */
const validMs = 60_000
/** Longer tokens would exceed the size limit of request headers. */
const [tokenMaxChars, grantMaxChars] = [6144, 12_288]

/**
 * Lets an agent read the tasks of other agents that a message refers to (spec/tasks.md#references), although it has no token
 * with which it could read them. The grant travels with the message; the agent returns it to a gateway with its own
 * token. Nothing is stored, so that any gateway on the same database can answer.
 */
export class ReferenceGrants {
  readonly #key: Uint8Array

  /** @param secretKey bytes that the gateways on one database share; they decrypt the callers' tokens in grants */
  constructor(secretKey: Uint8Array) {
    this.#key = new Uint8Array(hkdfSync('sha256', secretKey, '', 'parley reference grants', 32))
  }

  /** Undefined if the message refers to no task, or the caller's token cannot be used by the gateway alone. */
  seal(token: CallerToken | undefined, agent: string, taskIds: readonly string[] = []): string | undefined {
    if (token === undefined || taskIds.length === 0) return undefined
    const { text, introspection } = token.subject
    if (introspection.cnf !== undefined || text.length > tokenMaxChars) return undefined
    const content = { token: text, agent, tasks: taskIds.map(hashOf), until: Date.now() + validMs }
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, this.#key, nonce, { authTagLength: tagBytes })
    const sealed = [
      nonce,
      cipher.update(JSON.stringify(content), 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ]
    return Buffer.concat(sealed).toString('base64url')
  }

  /** Returns the token with which this task may be read, and the agent that may read it. */
  open(grant: string, taskId: string): { token: string; agent: string } | undefined {
    if (grant.length > grantMaxChars || !/^[\w-]+$/.test(grant)) return undefined
    const bytes = Buffer.from(grant, 'base64url')
    if (bytes.byteLength < nonceBytes + tagBytes) return undefined
    let text: string
    try {
      const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      }).setAuthTag(bytes.subarray(-tagBytes))
      const plain = [decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]
      text = Buffer.concat(plain).toString('utf8')
    } catch {
      return undefined
    }
    const content = grantContent.safeParse(jsonOf(text)).data
    if (content === undefined || content.until <= Date.now()) return undefined
    return content.tasks.includes(hashOf(taskId)) ? content : undefined
  }
}

const hashOf = (taskId: string) => hash('sha256', taskId.toLowerCase(), 'base64url').slice(0, 16)
