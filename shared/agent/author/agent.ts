import type { Deprecation } from '@parley/wire/model/deprecation'
import { isJsonObject } from '@parley/wire/model/json-text'
import { executionCost, type Price } from '@parley/wire/model/price'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import type { AgentDefinition, Handler } from './define-agent.ts'
import { withCurrentNames } from './manifest-names.ts'

/** A skill, with defaults applied. */
export interface Skill {
  id: string
  name: string
  description: string
  version: string
  tags: string[]
  inputModes: string[]
  outputModes: string[]
  examples: string[]
  capabilitiesDetail: Record<string, unknown>
  performance: { avgProcessingTimeMs?: number | undefined }
  allowedTools: string[]
  assessment: { keywords: string[]; specializations: string[]; antiPatterns: string[] }
  documentation?: string | undefined
  input?: z.ZodType | undefined
  /** The JSON Schema of a skill without `input`. */
  inputSchema?: JsonObject | undefined
  /** Default: the agent's price. */
  executionCost?: Price[] | undefined
}

/** A validated agent definition, with defaults applied. */
export interface Agent {
  name: string
  description: string
  version: string
  author: string
  skills: Skill[]
  capabilities: { streaming: boolean; pushNotifications: boolean }
  globalWebhook?: { url: string; token?: string | undefined } | undefined
  signatures: 'optional' | 'required'
  concurrency: number
  deadlineMs: number
  onRestart: 'run' | 'fail'
  extendedCard?:
    | { description?: string | undefined; skills?: Skill[] | undefined; [key: string]: unknown }
    | undefined
  /** If absent, only skills with a price cost anything. */
  executionCost?: Price[] | undefined
  handle: Handler
  /** The deprecated names that the definition uses. */
  deprecations?: Deprecation[]
}

const text = (max: number) => z.string().trim().min(1).max(max)
const texts = z.array(z.string().max(1000)).max(500).default([])
const modes = z
  .array(z.string().regex(/^[\w.+*-]+\/[\w.+*-]+$/, 'must be MIME types'))
  .min(1)
  .default(['text/plain'])

const skill = z.object({
  id: z.string().regex(/^[\w.-]{1,128}$/, 'may contain only letters, digits, _, . and -'),
  name: text(200),
  description: text(5000),
  version: z.string().max(50).default('1.0.0'),
  tags: texts,
  inputModes: modes,
  outputModes: modes,
  examples: texts,
  capabilitiesDetail: z.record(z.string(), z.unknown()).default({}),
  performance: z.object({ avgProcessingTimeMs: z.number().min(0).optional() }).default({}),
  allowedTools: texts,
  assessment: z
    .object({ keywords: texts, specializations: texts, antiPatterns: texts })
    .default({ keywords: [], specializations: [], antiPatterns: [] }),
  documentation: z.string().optional(),
  input: z.custom<z.ZodType>((value) => value === undefined || typeof value === 'object').optional(),
  inputSchema: z.custom<JsonObject>(isJsonObject, 'must be an object').optional(),
  executionCost,
})

const skills = z
  .array(skill)
  .refine((all) => new Set(all.map(({ id }) => id)).size === all.length, 'must have different ids')

const definition = z.object({
  name: text(128),
  description: text(5000),
  version: z.string().min(1).max(50).default('1.0.0'),
  author: text(128).default('parley'),
  skills: skills.min(1, 'must contain at least one skill (or add a file skills/<id>.md)'),
  capabilities: z
    .object({ streaming: z.boolean().default(true), pushNotifications: z.boolean().default(true) })
    .default({ streaming: true, pushNotifications: true }),
  globalWebhook: z
    .object({
      url: z.url({ protocol: /^https?$/, error: 'must be an http or https URL' }),
      token: z.string().min(1).max(4096).optional(),
    })
    .optional(),
  signatures: z.enum(['optional', 'required']).default('optional'),
  concurrency: z.int().min(1).max(10_000).default(64),
  // The maximum delay that a timer supports.
  deadlineMs: z.int().min(0).max(2_147_483_647).default(600_000),
  onRestart: z.enum(['run', 'fail']).default('run'),
  extendedCard: z.looseObject({ description: z.string().optional(), skills: skills.optional() }).optional(),
  executionCost,
  handle: z.custom<Handler>((value) => typeof value === 'function', 'must be a function'),
})

/** @throws Error with one sentence for each fault in the definition */
export function resolveAgent(given: AgentDefinition, moreSkills: readonly object[] = []): Agent {
  const { definition: named, deprecations } = withCurrentNames(given)
  const parsed = definition.safeParse({ ...named, skills: [...(given.skills ?? []), ...moreSkills] })
  if (parsed.success) return { ...parsed.data, deprecations }
  const faults = parsed.error.issues.map((issue) => `defineAgent: ${issue.path.join('.')} ${issue.message}.`)
  throw new Error(faults.join('\n'))
}
