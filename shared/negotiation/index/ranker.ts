import { besideWords, evidenceFor, massOf, meaningWeight, nearnessEvidence } from '../score/evidence.ts'
import type { Knowledge } from '../score/knowledge.ts'
import { exactScoreOf, negotiate, scoreWith } from '../score/negotiate.ts'
import { type Query, queryOf } from '../score/query.ts'
import type { NegotiationRequest } from '../score/request.ts'
import { type Subscores, sharesOf, weightedSum } from '../score/weighted.ts'
import { Admitted, type Excluded } from './admitted.ts'
import type { Ranking, RankOptions } from './agent-index.ts'
import { Best } from './best.ts'
import { addWords, Sums } from './gather.ts'
import type { Learned } from './learned.ts'
import { addLearned } from './learned-sums.ts'
import { likeliest } from './likeliest.ts'
import type { Row, Rows } from './rows.ts'
import type { WordIndex } from './word-index.ts'

export interface Parts {
  rows: Rows
  words: WordIndex
  learned: Learned
  ruled: ReadonlySet<Row>
  knowledgeOf: (row: Row | undefined, asked: RankOptions) => Knowledge
}

const limitMax = 1000
const limitDefault = 10
const excludedDefault = 100
const nothingButSkill: Subscores = { skillMatch: 0, ioCompatibility: 1, performance: 1, load: 1, cost: 1 }

/** One ranking under way. */
interface Run {
  wanted: NegotiationRequest
  options: RankOptions
  query: Query
  knowledge: Knowledge
  mass: number
  shares: Subscores
  /** The best score that an agent can have whose texts have nothing to do with the task. */
  restMost: number
  admitted: Admitted
  best: Best
  refused: Excluded[]
}

/**
 * The same order as scoring every agent one by one gives, without looking at most of them: sums of the index bound every
 * agent's score from above, and only those that could still have a place are scored exactly.
 */
export class Ranker {
  readonly #parts: Parts
  readonly #sums = new Sums()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  rank(wanted: NegotiationRequest, options: RankOptions): Ranking {
    const { rows, words, ruled } = this.#parts
    const run = this.#start(wanted, options)
    this.#sums.ready(words.capacity, rows.capacity)
    if (options.queryVector !== undefined) this.#scoreNear(run)
    else this.#scoreTouched(run)
    this.#scoreOthers(run)
    const { named, total } = run.admitted.excluded(rows, ruled, options.excludedLimit ?? excludedDefault)
    const excludedTotal = total + run.refused.length
    return {
      candidates: run.best.scored.map(({ row }) => this.#answer(rows.byNumber(row), run)),
      excluded: [...run.refused, ...named].slice(0, options.excludedLimit ?? excludedDefault),
      excludedTotal,
      total: rows.size - excludedTotal,
    }
  }

  #start(wanted: NegotiationRequest, options: RankOptions): Run {
    const { rows, knowledgeOf } = this.#parts
    const query = queryOf(wanted)
    const knowledge = remembering(knowledgeOf(undefined, options))
    const shares = sharesOf(wanted.weights)
    return {
      wanted,
      options,
      query,
      knowledge,
      mass: massOf(query, knowledge),
      shares,
      restMost: weightedSum(shares, nothingButSkill),
      admitted: new Admitted(rows, wanted, options.evenAway),
      best: new Best(Math.min(limitMax, options.limit ?? limitDefault)),
      refused: [],
    }
  }

  /** Agents that have to do with the task by their words, their direction or their lessons. */
  #scoreTouched(run: Run): void {
    const { rows, words, learned } = this.#parts
    const { query, mass, knowledge } = run
    const sums = this.#sums
    addWords(query, words, knowledge, sums)
    addLearned(query, mass, learned, rows, sums)
    for (const unit of likeliest(sums, words, 2 * (run.options.limit ?? limitDefault)))
      this.#visit(words.rowOf(unit), run)
    this.#scoreRest(run, query.meaning === undefined ? 0 : meaningWeight * mass)
  }

  /** Every unit that could still bring its agent a place, bounded twice: without its direction, then with it. */
  #scoreRest(run: Run, directionMost: number): void {
    const { words: index } = this.#parts
    const sums = this.#sums
    const { words, seen, ranking } = sums
    const { meaning } = run.query
    let least = this.#least(run)
    for (let unit = 0; unit < index.capacity; unit += 1) {
      if (sums.isSilent(unit)) continue
      const row = index.rowOf(unit)
      if (row < 0 || seen[row] === ranking) continue
      const said = words[unit] as number
      const most = sums.evidenceMost(row, said + besideWords(directionMost, said))
      if (most === 0 || most < least) continue
      const direction = meaning === undefined ? 0 : directionMost * index.likeness(unit, meaning)
      if (sums.evidenceMost(row, said + besideWords(direction, said)) < least) continue
      this.#visit(row, run)
      least = this.#least(run)
    }
  }

  /** With embeddings every agent may be near. */
  #scoreNear(run: Run): void {
    for (const row of this.#parts.rows.ordered()) {
      if (row.vectors !== undefined && nearnessEvidence(1, run.mass) > 0) this.#visit(row.number, run)
    }
    const { queryVector: _, ...options } = run.options
    this.#scoreTouched({ ...run, options })
  }

  /**
   * The rest by slug: where there is a place for such a score, all agents that have to do with the task were scored
   * before, and nothing in these fits it.
   */
  #scoreOthers(run: Run): void {
    const { best, restMost, wanted } = run
    const { seen, ranking } = this.#sums
    for (const row of this.#parts.rows.ordered()) {
      if (!best.takes(restMost, row.slug)) return
      if (seen[row.number] !== ranking) this.#offer(row, scoreWith(0, row.offer, wanted), run)
    }
  }

  #visit(number: number, run: Run): void {
    const { seen, ranking } = this.#sums
    if (seen[number] === ranking) return
    seen[number] = ranking
    const row = this.#parts.rows.byNumber(number)
    if (run.admitted.rule(row) !== undefined) return
    this.#offer(row, exactScoreOf(row.offer, run.wanted, this.#knowledge(row, run)), run)
  }

  #offer(row: Row, score: number, { best, admitted, options, refused }: Run): void {
    if (!best.takes(score, row.slug) || admitted.rule(row) !== undefined) return
    const rule = options.refuse?.(row.id)
    if (rule === undefined) best.put({ row: row.number, slug: row.slug, score })
    else refused.push({ id: row.id, slug: row.slug, rule })
  }

  /** The least evidence with which an agent could still have a place. */
  #least({ best, shares, restMost, mass }: Run): number {
    const { last } = best
    if (last === undefined || last.score <= restMost) return 0
    if (shares.skillMatch === 0) return Number.POSITIVE_INFINITY
    return evidenceFor((last.score - restMost) / shares.skillMatch - 1e-9, mass)
  }

  #knowledge(row: Row, { options, knowledge }: Run): Knowledge {
    const { rarityOf } = knowledge
    return { ...this.#parts.knowledgeOf(row, options), ...(rarityOf !== undefined && { rarityOf }) }
  }

  #answer(row: Row, run: Run) {
    return { id: row.id, slug: row.slug, ...negotiate(row.offer, run.wanted, this.#knowledge(row, run)) }
  }
}

/** Rarity is asked for again and again within one ranking. */
function remembering(knowledge: Knowledge): Knowledge {
  const { rarityOf } = knowledge
  if (rarityOf === undefined) return knowledge
  const known = new Map<string, number>()
  return {
    ...knowledge,
    rarityOf: (stem) => {
      let value = known.get(stem)
      if (value === undefined) {
        value = rarityOf(stem)
        known.set(stem, value)
      }
      return value
    },
  }
}
