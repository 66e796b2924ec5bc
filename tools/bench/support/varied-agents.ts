import { agents, numbersFrom } from '../../testing/routing-list.ts'

export interface VariedAgent {
  name: string
  description: string
  queueDepth: number
}

/**
 * An endless sequence of agents made from the texts in `tools/bench/data/routing`. Each agent has a description mixed
 * with words from another one, a unique name and a load.
 */
export function variedAgents(seed: number): (number: number) => VariedAgent {
  const next = numbersFrom(seed)
  const pick = () => agents[Math.floor(next() * agents.length)] as (typeof agents)[number]
  return (number) => {
    const { name, description } = pick()
    const others = pick().description.split(' ')
    const from = Math.floor(next() * others.length)
    const words = description.split(' ').filter(() => next() > 0.15)
    const text = [...words, ...others.slice(from, from + 5)].join(' ')
    const queueDepth = next() < 0.8 ? 0 : Math.floor(next() * 5)
    return { name: `${name} ${number}`, description: text, queueDepth }
  }
}
