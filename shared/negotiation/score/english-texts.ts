import type { Language } from '../words/function-words.ts'
import { languageOf } from '../words/language.ts'
import { inEnglish } from '../words/translation.ts'
import type { Offer, OfferedSkill } from './offer.ts'

interface OfferTexts {
  name: string
  description: string
  skills: readonly OfferedSkill[]
}

/** Number of skills that are read to detect the language, and the most characters of an agent that are translated. */
const sampleSkills = 20
const charsMax = 20_000

/** The texts of an agent and its skills in English, if they are in a language that is translated. */
export function textsInEnglish(offer: Pick<Offer, 'name' | 'description' | 'skills'>): OfferTexts {
  const { name = '', description = '', skills } = offer
  const sample = skills.slice(0, sampleSkills).flatMap((skill) => [skill.name, skill.description])
  const language = languageOf([description, ...sample, name].join('\n'))
  if (language === undefined) return { name, description, skills }
  const english = translator(language)
  return {
    name: english(name),
    description: english(description),
    skills: skills.map((skill) => {
      const { assessment } = skill
      return {
        ...skill,
        name: english(skill.name),
        description: english(skill.description),
        tags: skill.tags.map(english),
        examples: skill.examples.map(english),
        assessment: {
          ...assessment,
          keywords: assessment.keywords.map(english),
          specializations: assessment.specializations.map(english),
        },
      }
    }),
  }
}

/** Texts beyond the limit are kept. */
function translator(language: Language): (text: string) => string {
  let left = charsMax
  return (text) => {
    left -= text.length
    return left < 0 ? text : inEnglish(text, language)
  }
}
