import { z } from 'zod'
import type { JsonObject, JsonValue } from '../../model/task.ts'

/** A skill as an agent lists it, with the facts that a negotiation uses. */
export interface SkillListing {
  id: string
  name: string
  description: string
  version: string
  tags: readonly string[]
  inputModes: readonly string[]
  outputModes: readonly string[]
  examples: readonly string[]
  documentationPath: string
  performance: { avgProcessingTimeMs?: number | undefined }
  allowedTools: readonly string[]
  assessment: {
    keywords: readonly string[]
    specializations: readonly string[]
    antiPatterns: readonly string[]
  }
}

/** A skill in the list of `GET /agent/skills` (spec/discovery.md#skills). */
export function skillSummaryOut(skill: SkillListing) {
  return {
    id: skill.id,
    name: skill.name,
    description: skill.description,
    version: skill.version,
    tags: skill.tags,
    input_modes: skill.inputModes,
    output_modes: skill.outputModes,
    examples: skill.examples,
    documentation_path: skill.documentationPath,
    performance: { avg_processing_time_ms: skill.performance.avgProcessingTimeMs ?? null },
    allowed_tools: skill.allowedTools,
    assessment: {
      keywords: skill.assessment.keywords,
      specializations: skill.assessment.specializations,
      anti_patterns: skill.assessment.antiPatterns,
    },
  }
}

/** One skill in full, the answer of `GET /agent/skills/{id or name}`. */
export function skillDetailOut(
  skill: SkillListing & { capabilitiesDetail: Record<string, unknown>; documentation?: string | undefined },
) {
  return {
    ...skillSummaryOut(skill),
    capabilities_detail: skill.capabilitiesDetail,
    has_documentation: skill.documentation !== undefined,
  }
}

/** A skill as an agent listed it, in the spelling of `GET /agent/skills`: a registry stores it and passes it on. */
export interface ListedSkill extends JsonObject {
  id: string
  name: string
  description: string
  tags: string[]
  input_modes: string[]
  output_modes: string[]
}

const line = z.string().max(512)
const words = z.array(line).max(256)

/** A skill of a card (camelCase) or of `GET /agent/skills` (snake_case). */
const listed = z.looseObject({
  id: line.min(1),
  name: line.optional(),
  description: z.string().max(16_384).default(''),
  tags: words.default([]),
  input_modes: words.optional(),
  inputModes: words.optional(),
  output_modes: words.optional(),
  outputModes: words.optional(),
  documentationPath: z.custom<JsonValue>().optional(),
})

/** Items that are not skills are left out, so that one of them does not exclude its agent. */
export function readListedSkills(list: unknown): ListedSkill[] {
  if (!Array.isArray(list)) return []
  return list.slice(0, 1000).flatMap((item) => {
    const parsed = listed.safeParse(item)
    if (!parsed.success) return []
    const { input_modes, inputModes, output_modes, outputModes, documentationPath, ...rest } = parsed.data
    return {
      ...rest,
      ...(documentationPath !== undefined && { documentation_path: documentationPath }),
      id: rest.id,
      name: rest.name ?? rest.id,
      description: rest.description,
      tags: rest.tags,
      input_modes: input_modes ?? inputModes ?? [],
      output_modes: output_modes ?? outputModes ?? [],
    }
  })
}

export function modesOf(skill: ListedSkill): { inputModes: string[]; outputModes: string[] } {
  return { inputModes: skill.input_modes, outputModes: skill.output_modes }
}

/** The skill with the path of its documentation below that of its agent. */
export function withDocumentationBelow(skill: ListedSkill, prefix: string): ListedSkill {
  const path = skill['documentation_path']
  if (typeof path !== 'string') return { ...skill }
  return { ...skill, documentation_path: `${prefix}/${path.replace(/^\/+/, '')}` }
}

/** A listed skill in full, the answer of `GET /agent/skills/{id or name}` of a gateway. */
export function listedSkillDetail<T extends ListedSkill>(skill: T) {
  return { ...skill, has_documentation: typeof skill['documentation_path'] === 'string' }
}

const texts = z.array(z.string().max(1000)).max(500).catch([])
const noAssessment = { keywords: [], specializations: [], anti_patterns: [] }
const facts = z.object({
  examples: texts,
  allowed_tools: texts,
  performance: z.object({ avg_processing_time_ms: z.number().min(0).nullish() }).catch({}),
  assessment: z.object({ keywords: texts, specializations: texts, anti_patterns: texts }).catch(noAssessment),
})

/** Facts about a skill that a negotiation uses and a registry does not require. Values of another type count as absent. */
export function skillFacts(skill: ListedSkill) {
  const { examples, allowed_tools, performance, assessment } = facts.parse(skill)
  return {
    examples,
    allowedTools: allowed_tools,
    performance: { avgProcessingTimeMs: performance.avg_processing_time_ms ?? undefined },
    assessment: {
      keywords: assessment.keywords,
      specializations: assessment.specializations,
      antiPatterns: assessment.anti_patterns,
    },
  }
}
