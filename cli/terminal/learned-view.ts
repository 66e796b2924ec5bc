import type { learnedAnswer } from '@parley/wire/codecs/answers/operator/records'
import type { z } from 'zod'
import { type Io, print, say } from './io.ts'
import { oneLine } from './printable.ts'
import { table } from './table.ts'

type Learned = z.output<typeof learnedAnswer>

/** Prints what the gateway has learned about an agent. */
export function printLearned(io: Io, learned: Learned): void {
  const { agent, examples, callers, callers_total: total, words } = learned
  if (!learned.learning) print(io, 'The gateway runs with ROUTE_LEARNING=no: examples have no effect.\n')
  if (examples === 0) {
    print(io, `Nothing has been learned about ${agent}.\n`)
    return say(io, 'Teach: npx parley feedback <task> --rating <1 to 5>, or --wrong --right <agent>')
  }
  const facts: [string, string][] = [
    ['examples', countsText(learned)],
    ['callers', String(total)],
    ['since', learned.since === null ? '-' : dayOf(learned.since)],
    ['score', scoreText(learned)],
    ['for', words === null ? hiddenText : wordsText(words.positive)],
    ['against', words === null ? hiddenText : wordsText(words.negative)],
  ]
  for (const [name, value] of facts) print(io, `${name.padEnd(8)} ${oneLine(value, 600)}\n`)
  const rows = callers.map(({ caller, examples: count, positive, negative, since }) => [
    oneLine(caller, 22),
    String(count),
    String(positive),
    String(negative),
    dayOf(since),
  ])
  print(io, `\n${table([['CALLER', 'EXAMPLES', 'POSITIVE', 'NEGATIVE', 'SINCE'], ...rows])}`)
  if (total > callers.length)
    say(io, `Not shown: ${counted(total - callers.length, 'caller')} with fewer examples.`)
  say(io, `Forget all: npx parley learned ${agent} --forget (one caller: --caller <hash>)`)
}

const hiddenText = 'not shown (OPERATOR_READS_TEXTS=no)'

function countsText({ examples, positive, negative }: Learned): string {
  return `${examples} (${positive} positive, ${negative} negative, ${examples - positive - negative} neutral)`
}

function scoreText({ learning, raises_score, missing, negative }: Learned): string {
  const lowers = negative > 0 ? '; negative examples lower it' : ''
  if (!learning) return 'not changed'
  if (raises_score) return `positive examples raise it${lowers}`
  const needed = [
    missing.examples > 0 ? counted(missing.examples, 'more positive example') : '',
    missing.callers > 0 ? `positive examples of ${counted(missing.callers, 'more caller')}` : '',
  ].filter((text) => text !== '')
  return `not raised yet: needs ${needed.join(' and ')}${lowers}`
}

function wordsText(words: { word: string; weight: number }[]): string {
  return words.map(({ word, weight }) => `${word} (${weight})`).join(', ') || '-'
}

/** A number with its noun. */
export const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? '' : 's'}`
const dayOf = (time: string) => time.slice(0, 10)
