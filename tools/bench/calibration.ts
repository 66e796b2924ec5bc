/**
 * Whether a skill match is a probability: for registries of 10 to 1,000 agents, with and without training examples, the predicted and the actual
 * fraction of texts that the best agent serves. Half of the texts are served by an agent of the registry, by weight. Then the
 * coefficients of `score/calibration.ts`, fitted on registries other than those of the table.
 */
import { readFileSync } from 'node:fs'
import { logOddsFor, oddsLine } from '@parley/negotiation/score/calibration'
import type { Offer } from '@parley/negotiation/score/offer'
import { defaultWeights, routeMinScore } from '@parley/negotiation/score/weights'
import { skillOf, texts } from '../testing/routing-list.ts'
import { closeEncoder, type Mode, optionsFor, prepare } from './support/meaning.ts'
import { type Reduced, reducedRegistry } from './support/registries.ts'
import { printTable, saveResults } from './support/report.ts'
import { request } from './support/routing-data.ts'

interface Tool {
  name: string
  skills: { name: string; description: string }[]
}

/** One text, with the match of the best agent. */
interface Row {
  match: number
  /** The total score with the default weights. */
  score: number
  evidence: number
  right: boolean
  isServed: boolean
  weight: number
  agents: number
  trained: number
}

const tools = JSON.parse(readFileSync(new URL('./data/tools/agents.json', import.meta.url), 'utf8')) as Tool[]
const unrelated = (count: number): Offer[] =>
  tools.slice(0, count).map(({ name, skills }) => ({
    name: `tool ${name}`,
    description: skills[0]?.description ?? '',
    skills: skills.slice(0, 3).map((skill) => skillOf(skill.name, skill.description)),
    queueDepth: 0,
  }))
const sizes = [10, 20, 50, 100, 1000]
const tableSeeds = [1, 2, 3, 4, 5]
const fitSeeds = [50, 51, 52, 53, 54, 55]
const bins = [0, 0.2, 0.4, 0.6, 0.8, 1.01]

async function rowsOf(size: number, seed: number, isTrained: boolean, mode: Mode): Promise<Row[]> {
  // 1,000 agents are 100 of the list and 900 tools of another one, some of which serve texts too, so that the figures are a little too low.
  const more = size > 199 ? unrelated(Math.min(tools.length, size - 100)) : []
  const registry = await reducedRegistry(size > 199 ? 100 : size, seed, isTrained, mode, more)
  return [...rowsFor(registry, true, mode), ...rowsFor(registry, false, mode)]
}

function rowsFor({ index, served, others }: Reduced, isServed: boolean, mode: Mode): Row[] {
  const own = isServed ? served : others
  return own.flatMap(({ query, agent }) => {
    const options = { limit: 1, ...optionsFor(query, mode) }
    const [best] = index.rank(request(query), options).candidates
    if (best === undefined) return []
    const registry = index.knowledgeOf(best.id).registry ?? { agents: index.size, trained: 0 }
    const match = best.exactScore
    const { slope, constant } = oddsLine(mode === 'meaning', registry)
    const evidence = match === 0 ? 0 : (logOddsFor(match) - constant) / slope
    const weight = 0.5 / own.length
    const right = isServed && best.id === agent
    const score = 1 - defaultWeights.skillMatch * (1 - match)
    return [{ match, score, evidence, right, isServed, weight, ...registry }]
  })
}

const sum = (rows: readonly Row[], of: (row: Row) => number) => rows.reduce((all, row) => all + of(row), 0)
const total = (rows: readonly Row[]) => sum(rows, ({ weight }) => weight)
const share = (rows: readonly Row[], of: (row: Row) => number) =>
  total(rows) === 0 ? undefined : sum(rows, (row) => row.weight * of(row)) / total(rows)
const figure = (value: number | undefined) => (value === undefined ? '–' : value.toFixed(2))

function reliability(rows: readonly Row[]): string[] {
  return bins.slice(0, -1).map((from, at) => {
    const own = rows.filter(({ match }) => match >= from && match < (bins[at + 1] ?? 0))
    const [predicted, actual] = [share(own, ({ match }) => match), share(own, ({ right }) => Number(right))]
    return `${figure(predicted)} → ${figure(actual)}`
  })
}

/** The mean difference of predicted and actual fractions over ten bins, weighted by the number of texts. */
function calibrationError(rows: readonly Row[]): number {
  let error = 0
  for (let bin = 0; bin < 10; bin += 1) {
    const own = rows.filter(({ match }) => Math.min(9, Math.floor(match * 10)) === bin)
    const difference =
      (share(own, ({ match }) => match) ?? 0) - (share(own, ({ right }) => Number(right)) ?? 0)
    error += (total(own) / total(rows)) * Math.abs(difference)
  }
  return error
}

/** Logistic regression by Newton's method on weighted rows. */
function fit(rows: readonly Row[]): number[] {
  const features = ({ evidence, agents, trained }: Row) => [
    evidence,
    1,
    evidence * trained,
    trained,
    Math.log(Math.min(1000, agents)),
  ]
  const count = 5
  let values = Array<number>(count).fill(0)
  for (let round = 0; round < 30; round += 1) {
    const gradient = Array<number>(count).fill(0)
    const hessian = Array.from({ length: count }, (_, at) =>
      Array.from({ length: count }, (_unused, other) => (at === other ? 1e-6 : 0)),
    )
    for (const row of rows) {
      const x = features(row)
      const odds = x.reduce((all, value, at) => all + value * (values[at] ?? 0), 0)
      const p = 1 / (1 + Math.exp(-odds))
      x.forEach((value, at) => {
        gradient[at] = (gradient[at] ?? 0) + row.weight * (Number(row.right) - p) * value
        x.forEach((other, place) => {
          const line = hessian[at] as number[]
          line[place] = (line[place] ?? 0) + row.weight * p * (1 - p) * value * other
        })
      })
    }
    const step = solve(hessian, gradient)
    values = values.map((value, at) => value + (step[at] ?? 0))
  }
  return values
}

/** Solves a small system of linear equations by elimination. */
function solve(matrix: number[][], right: number[]): number[] {
  const rows = matrix.map((line, at) => [...line, right[at] ?? 0])
  rows.forEach((line, at) => {
    for (let other = at + 1; other < rows.length; other += 1) {
      const factor = (rows[other]?.[at] ?? 0) / (line[at] ?? 1)
      rows[other] = (rows[other] ?? []).map((value, place) => value - factor * (line[place] ?? 0))
    }
  })
  const values = Array<number>(rows.length).fill(0)
  for (let at = rows.length - 1; at >= 0; at -= 1) {
    const line = rows[at] ?? []
    const known = values.reduce((all, value, place) => all + (place > at ? value * (line[place] ?? 0) : 0), 0)
    values[at] = ((line.at(-1) ?? 0) - known) / (line[at] ?? 1)
  }
  return values
}

async function all(seeds: readonly number[], size: number, isTrained: boolean, mode: Mode): Promise<Row[]> {
  const rows: Row[] = []
  for (const seed of seeds) rows.push(...(await rowsOf(size, seed, isTrained, mode)))
  return rows
}

await prepare(texts.map(({ query }) => query))
const results: Record<string, unknown>[] = []
const minScores = [0.62, 0.67, 0.72, 0.76, 0.8]
for (const mode of ['words', 'meaning'] as const) {
  const lines: string[][] = []
  const precision: string[][] = []
  for (const isTrained of [false, true]) {
    for (const size of sizes) {
      const rows = await all(tableSeeds, size, isTrained, mode)
      const name = `${size}${isTrained ? ', trained' : ''}`
      const error = calibrationError(rows)
      lines.push([name, ...reliability(rows), error.toFixed(3)])
      const at = [...minScores, routeMinScore].map((least) => {
        const accepted = rows.filter(({ score }) => score >= least)
        const served = rows.filter(({ isServed }) => isServed)
        return {
          least,
          precision: share(accepted, ({ right }) => Number(right)),
          accepted: share(served, ({ score }) => Number(score >= least)),
          refused: share(
            rows.filter(({ isServed }) => !isServed),
            ({ score }) => Number(score < least),
          ),
        }
      })
      precision.push([
        name,
        ...at.map((one) => `${figure(one.precision)} / ${figure(one.accepted)} / ${figure(one.refused)}`),
      ])
      results.push({ mode, size, isTrained, error, at })
    }
  }
  console.log(`\n${mode}: predicted → actual`)
  printTable(['agents', '0–0.2', '0.2–0.4', '0.4–0.6', '0.6–0.8', '0.8–1', 'error'], lines)
  console.log(
    `\n${mode}: minimum score with the default weights: right of the accepted / accepted of the served / refused of the others`,
  )
  printTable(['agents', ...minScores.map(String), `default ${routeMinScore}`], precision)
}
if (process.env['BENCH_FIT'] === 'yes') {
  for (const mode of ['words', 'meaning'] as const) {
    const rows: Row[] = []
    for (const isTrained of [false, true])
      for (const size of sizes) rows.push(...(await all(fitSeeds, size, isTrained, mode)))
    const [evidence, constant, evidenceTrained, constantTrained, agents] = fit(rows).map((value) =>
      value.toFixed(3),
    )
    console.log(mode, { evidence, constant, evidenceTrained, constantTrained, agents })
  }
}
await saveResults('calibration', { results })
await closeEncoder()
