/** Prints the scores by words only of `tools/bench/data/routing` and `tools/bench/data/tools` as JSON: one row per text, one column per agent. */
import { readFileSync } from 'node:fs'
import { skillOf } from '../../testing/routing-list.ts'
import { indexOf } from './registries.ts'
import { request } from './routing-data.ts'

interface Agent {
  name: string
  description?: string
  skills?: { name: string; description?: string }[]
}

async function scoresOf(folder: string): Promise<number[][]> {
  const read = (name: string) => readFileSync(new URL(`../data/${folder}/${name}`, import.meta.url), 'utf8')
  const offers = (JSON.parse(read('agents.json')) as Agent[]).map(({ name, description = '', skills }) => ({
    name,
    description,
    queueDepth: 0,
    skills: (skills ?? [{ name }]).map((skill) => skillOf(skill.name, skill.description)),
  }))
  const index = await indexOf(offers, 'words')
  return read('queries.jsonl')
    .trim()
    .split('\n')
    .map((line) => {
      const { candidates } = index.rank(request(JSON.parse(line).query), { limit: offers.length })
      const scores = new Map(candidates.map(({ id, exactScore }) => [id, exactScore]))
      return offers.map(({ name }) => scores.get(name) ?? 0)
    })
}

console.log(JSON.stringify({ routing: await scoresOf('routing'), tools: await scoresOf('tools') }))
