import { z } from 'zod'
import { RegistrationGateway } from '../registration/testing.ts'
import type { Announcement } from '../registry/entry.ts'
import { catalogEntry } from './ard-schemas.ts'

const entries = z.array(catalogEntry.loose())
const answer = z.object({
  entries: entries.default([]),
  results: entries.default([]),
  items: entries.default([]),
  referrals: z.array(z.unknown()).optional(),
  pageToken: z.string().optional(),
  total: z.int().optional(),
  facets: z.record(z.string(), z.object({ buckets: z.array(z.unknown()), otherCount: z.int() })).optional(),
  errorCode: z.string().optional(),
  message: z.string().default(''),
})

/** A gateway with agents that do not run, and its discovery routes. For tests only. */
export class CatalogGateway implements AsyncDisposable {
  readonly deployment: RegistrationGateway

  private constructor(deployment: RegistrationGateway) {
    this.deployment = deployment
  }

  static async start(env: Record<string, string> = {}): Promise<CatalogGateway> {
    const deployment = await RegistrationGateway.open()
    await deployment.start(env)
    return new CatalogGateway(deployment)
  }

  get registry() {
    return this.deployment.gateway.registry
  }

  /** Registers an agent with one skill. */
  async add(
    name: string,
    description: string,
    {
      examples = [],
      tags = [],
      ...fields
    }: Partial<Announcement> & { examples?: string[]; tags?: string[] } = {},
  ) {
    const skill = { id: name, name, description, tags, examples, input_modes: [], output_modes: [] }
    return this.registry.register({
      name,
      description,
      url: `http://127.0.0.1:9/${encodeURIComponent(name)}`,
      card: { name, description, version: '1.2.3' },
      skills: [skill],
      owner: name,
      origin: 'supervised',
      verified: true,
      admitted: true,
      admittedBy: 'supervisor',
      ...fields,
    })
  }

  async send(method: 'GET' | 'POST', path: string, body?: unknown, headers: Record<string, string> = {}) {
    const response = await fetch(`${this.deployment.gateway.addresses.local}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: answer.parse(JSON.parse(text || '{}')),
    }
  }

  search(text: string, more: { filter?: object } & Record<string, unknown> = {}, headers = {}) {
    const { filter, ...rest } = more
    return this.send('POST', '/search', { query: { text, ...(filter && { filter }) }, ...rest }, headers)
  }

  [Symbol.asyncDispose]() {
    return this.deployment[Symbol.asyncDispose]()
  }
}
