import type { Skill } from '../../author/agent.ts'
import { documentationPath } from './agent-card.ts'

/** A skill in the list of `GET /agent/skills`, in snake_case, with all that a negotiation reads (spec/discovery.md#skills). */
export function skillSummary(skill: Skill) {
  return {
    id: skill.id,
    name: skill.name,
    description: skill.description,
    version: skill.version,
    tags: skill.tags,
    input_modes: skill.inputModes,
    output_modes: skill.outputModes,
    examples: skill.examples,
    documentation_path: documentationPath(skill),
    performance: { avg_processing_time_ms: skill.performance.avgProcessingTimeMs ?? null },
    allowed_tools: skill.allowedTools,
    assessment: {
      keywords: skill.assessment.keywords,
      specializations: skill.assessment.specializations,
      anti_patterns: skill.assessment.antiPatterns,
    },
  }
}

/** The whole skill of `GET /agent/skills/{id or name}`. */
export function skillDetail(skill: Skill) {
  return {
    ...skillSummary(skill),
    capabilities_detail: skill.capabilitiesDetail,
    has_documentation: skill.documentation !== undefined,
  }
}

export function findSkill(skills: readonly Skill[], idOrName: string): Skill | undefined {
  return skills.find(({ id }) => id === idOrName) ?? skills.find(({ name }) => name === idOrName)
}
