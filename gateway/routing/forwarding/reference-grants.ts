import { hkdfSync, randomBytes } from 'node:crypto'
import type { Log } from '@parley/kit/process/log'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { CipherKey, keyBytes } from '../../keys/cipher-key.ts'
import type { CallerToken } from './caller-token.ts'
import type { GrantRecords } from './grant-records.ts'

/** The request header with the secret of a grant. */
export const referencesHeader = 'x-parley-references'

const grantContent = z.object({
  /** The caller's token. */
  token: z.string(),
  /** Id of the agent's entry. */
  agent: z.string(),
  /** Task ids in lower case. */
  tasks: z.array(z.string()),
  /** Milliseconds since 1970. */
  until: z.number(),
})
export type Grant = z.infer<typeof grantContent>

const context = 'parley reference grant'
const secretForm = /^[\w-]{43}$/
/** An agent reads the tasks before it accepts the message. */
const validMs = 60_000

export interface ReferenceGrantsOptions {
  /** Bytes that the gateways on one database share. */
  secretKey: Uint8Array
  records: GrantRecords
  log: Log
}

/**
 * Lets an agent read the tasks of other agents that a message refers to (spec/tasks.md#references), although it has no token
 * with which it could read them. The agent receives only a random secret with the message, and returns it to a gateway with
 * its own token. The gateways keep the grant with the caller's token, encrypted with a key that is derived from their
 * secret and the secret of the grant, so that neither a copy of the database nor the header is sufficient to read it.
 */
export class ReferenceGrants {
  readonly #options: ReferenceGrantsOptions

  constructor(options: ReferenceGrantsOptions) {
    this.#options = options
  }

  /**
   * Returns the secret of a new grant. Undefined if the message refers to no task, the caller's token cannot be used by the
   * gateway alone, or the grant cannot be stored.
   */
  async create(
    token: CallerToken | undefined,
    agent: string,
    taskIds: readonly string[] = [],
  ): Promise<string | undefined> {
    if (token === undefined || taskIds.length === 0) return undefined
    const { text, introspection } = token.subject
    if (introspection.cnf !== undefined) return undefined
    const until = Date.now() + validMs
    const grant: Grant = { token: text, agent, tasks: taskIds.map((id) => id.toLowerCase()), until }
    const secret = randomBytes(keyBytes).toString('base64url')
    const { id, key } = this.#derive(secret)
    try {
      const sealed = key.seal(JSON.stringify(grant), context)
      await this.#options.records.save({ id, sealed, until, owner: token.caller.subject })
      return secret
    } catch (error) {
      this.#options.log.warn(
        { err: error },
        'a grant for the tasks that a message refers to could not be stored',
      )
      return undefined
    }
  }

  /** Returns the grant with this secret if it is valid for the task. */
  async find(secret: string, taskId: string): Promise<Grant | undefined> {
    if (!secretForm.test(secret)) return undefined
    const { id, key } = this.#derive(secret)
    const sealed = await this.#options.records.find(id)
    const text = sealed === undefined ? undefined : key.open(sealed, context)
    const grant = text === undefined ? undefined : grantContent.safeParse(jsonOf(text)).data
    if (grant === undefined || grant.until <= Date.now()) return undefined
    return grant.tasks.includes(taskId.toLowerCase()) ? grant : undefined
  }

  /** The id does not reveal the key. */
  #derive(secret: string): { id: string; key: CipherKey } {
    const bytes = Buffer.from(
      hkdfSync('sha256', this.#options.secretKey, Buffer.from(secret), context, 2 * keyBytes),
    )
    return {
      id: bytes.subarray(keyBytes).toString('base64url'),
      key: new CipherKey(bytes.subarray(0, keyBytes)),
    }
  }
}
