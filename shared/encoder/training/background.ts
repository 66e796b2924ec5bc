/**
 * Writes `model/background.vec` and `model/background.txt`: skills to which requests are compared, because a request that is near to
 * many skills says less about each of them. The skills are those of the training pairs that have a description.
 *
 *     node training/background.ts pairs.jsonl
 */
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { dimensions, SentenceEncoder } from '../sentence-encoder.ts'

const charsMax = 250
/** Models of an endpoint embed only this many of them. */
const textsKept = 256
const model = new URL('../model/', import.meta.url)

interface Pair {
  skill: string
}

const pairs = readFileSync(process.argv[2] ?? 'pairs.jsonl', 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Pair)
const skills = [...new Set(pairs.map(({ skill }) => skill))].filter(
  (skill) => skill.includes(': ') && skill.length < charsMax,
)
await using encoder = new SentenceEncoder({ keptMax: skills.length })
const encoded = await encoder.embed(skills)
if ('failed' in encoded) throw new Error(encoded.failed)
const bytes = Buffer.alloc(skills.length * dimensions)
encoded.vectors.forEach((vector, at) => {
  const most = Math.max(...vector.map(Math.abs))
  vector.forEach((value, place) => bytes.writeInt8(Math.round((value / most) * 127), at * dimensions + place))
})
writeFileSync(new URL('background.vec', model), bytes)
const step = Math.floor(skills.length / textsKept)
const kept = skills.filter((_, at) => at % step === 0).slice(0, textsKept)
writeFileSync(new URL('background.txt', model), `${kept.join('\n')}\n`)
const names = ['encoder.onnx', 'vocabulary.txt', 'background.vec', 'background.txt']
const sums = names.map((name) => {
  const content = readFileSync(new URL(name, model))
  return `${createHash('sha256').update(content).digest('hex')}  ${name}\n`
})
writeFileSync(new URL('SHA256SUMS', model), sums.join(''))
console.log(`${skills.length} skills`)
