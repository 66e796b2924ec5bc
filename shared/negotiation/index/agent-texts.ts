import { textsInEnglish } from '../score/english-texts.ts'
import type { Offer, OfferedSkill } from '../score/offer.ts'
import type { AgentVectors } from './skill-vectors.ts'

/** The texts of an agent that are embedded and compared with requests. */
export interface AgentTexts {
  agent: string | undefined
  skills: { text: string; examples: string[] }[]
}

const charsMax = 400
const examplesMax = 8

/** An agent's texts in English, in the form with which the encoder was trained: `agent, skill: description`. */
export function textsOf(offer: Offer): AgentTexts {
  const { name, description, skills } = textsInEnglish(offer)
  const about = short(description)
  return {
    agent: about === '' || skills.some((skill) => short(skill.description) === about) ? undefined : about,
    skills: skills.map((skill) => ({
      text: skillText(skill, name, about),
      examples: skill.examples.map(short).filter(Boolean).slice(0, examplesMax),
    })),
  }
}

function skillText({ name, description }: OfferedSkill, agent: string, about: string): string {
  const isSame = agent === '' || agent.toLowerCase() === name.toLowerCase()
  const title = isSame ? name : `${agent}, ${name}`
  const text = short(description) || about
  return short(text === '' ? title : `${title}: ${text}`) || 'skill'
}

const short = (text: string): string => text.replace(/\s+/gu, ' ').trim().slice(0, charsMax)

/** The texts in one list, for one call of an encoder. */
export const listOf = ({ agent, skills }: AgentTexts): string[] => [
  ...(agent === undefined ? [] : [agent]),
  ...skills.flatMap(({ text, examples }) => [text, ...examples]),
]

/** The vectors of `listOf` in the shape of the texts. */
export function vectorsOf({ agent, skills }: AgentTexts, vectors: readonly Float32Array[]): AgentVectors {
  let at = 0
  const next = () => vectors[at++] as Float32Array
  return {
    ...(agent !== undefined && { agent: next() }),
    skills: skills.map(({ examples }) => ({ text: next(), examples: examples.map(next) })),
  }
}
