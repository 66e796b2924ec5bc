import { readFileSync } from 'node:fs'
import path from 'node:path'
import { loadAgent } from '@parley/agent/internal/author/load-agent'
import type { Offer } from '@parley/negotiation/score/offer'

/** A request as a person would write it, with the bundled agent that serves it. */
export interface NaturalRequest {
  id: number
  text: string
  files?: { name: string; type: string }[]
  /** Null if no bundled agent serves the request. */
  agent: string | null
  /** Whether the request was not looked at while the ranking was developed. */
  heldOut: boolean
}

const read = (name: string) =>
  readFileSync(new URL(`../bench/data/natural/${name}`, import.meta.url), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as NaturalRequest)

export const naturalRequests = read('requests.jsonl')
/** Requests on which nothing was tuned. The authors of the ranking have not read them. */
export const furtherRequests = read('further.jsonl')

const agentsFolder = path.join(import.meta.dirname, '../../agents')

/** The offers of the bundled agents that requests are sent to, by name. */
export async function bundledOffers(): Promise<Map<string, Offer>> {
  const offers = new Map<string, Offer>()
  for (const name of ['calculator', 'data-analyst', 'document-maker', 'forecaster', 'summarizer']) {
    const { name: title, description, skills, executionCost } = await loadAgent(path.join(agentsFolder, name))
    const price = executionCost?.[0]
    const cost = price === undefined ? {} : { price: { amount: price.amount } }
    offers.set(name, { name: title, description, skills, queueDepth: 0, ...cost })
  }
  return offers
}

/** The media types of a request's parts. */
export const typesOf = ({ text, files = [] }: NaturalRequest): string[] => [
  ...new Set([...(text === '' ? [] : ['text/plain']), ...files.map(({ type }) => type)]),
]
