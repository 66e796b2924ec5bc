import path from 'node:path'
import { readSkillFiles } from '@parley/agent/internal/author/skill-file'
import { readListedSkills } from '@parley/wire/codecs/parley/skills'
import type { JsonValue } from '@parley/wire/model/task'
import { beforeEach, expect, test } from 'vitest'
import { agent, bearer, call, type FakeAgent, gateway, gatewayForEachTest, saying } from './testing.ts'

gatewayForEachTest()

const letter =
  'make a pdf of this text: Dear Sir or Madam, thank you for your order of 12 chairs. They leave our warehouse on Monday and will be with you within three days. Yours, Ada'
const article =
  'Summarize this article in three sentences: The agency launched its new rocket from the coast on Tuesday. The launch had been delayed by storms for weeks. Engineers say that the second stage worked as planned, and that all satellites reached their orbits.'
const articleAsPdf =
  'Make a PDF of this article: The agency launched its new rocket from the coast on Friday. Engineers say that all stages worked as planned, and that the satellites reached their orbits.'

/** The skill that `npx parley new hello` generates. */
const greet = {
  id: 'hello',
  name: 'Greet',
  description: 'Greets a person by name',
  tags: ['greeting'],
  input_modes: ['text/plain'],
  output_modes: ['text/plain'],
  examples: ['Ada'],
}

const summarize = {
  ...greet,
  id: 'summarize',
  name: 'Summarize text',
  description: 'Makes a short summary of a long text: picks the sentences that say most',
  tags: ['summary', 'summarization', 'text', 'tl;dr'],
  examples: ['Sum this up in two sentences: …', 'TL;DR of this article, please.'],
}

let hello: FakeAgent

beforeEach(async () => {
  hello = await agent('hello', 'Greets whoever tells their name', { skills: [greet] })
})

async function documentMaker() {
  const skills = await readSkillFiles(path.resolve('agents/document-maker/skills'))
  const about = 'Markdown or results of other tasks become a PDF'
  return agent('document-maker', about, { skills: readListedSkills(skills as unknown as JsonValue) })
}

/** Sends a message that goes to the agent and waits until its task is completed. */
async function completed(slug: string, text: string, client = 'alice', rating?: number) {
  const entry = gateway().registry.find(slug)
  const negotiation = { task_summary: entry?.description ?? '', min_score: 0 }
  const authorization = bearer(client)
  const sent = await call('message/send', saying(text, {}, { negotiation }), { authorization })
  expect(sent.headers.get('x-agent')).toBe(slug)
  const outcome = { task_id: sent.json.result.id, state: 'completed', ...(rating && { rating }) }
  const answer = await fetch(`${gateway().addresses.public}/registry/agents/${slug}/heartbeat`, {
    method: 'PUT',
    headers: { authorization: bearer(slug), 'content-type': 'application/json' },
    body: JSON.stringify({ outcomes: [outcome] }),
  })
  expect(answer.status).toBe(200)
}

const winner = async (text: string) => (await call('message/send', saying(text))).headers.get('x-agent')

test('after one completed but unrated task, an unrelated letter signed with a name does not go to hello', async () => {
  await completed('hello', 'Ada')
  const refused = await call('message/send', saying(letter))
  expect([refused.status, refused.json.error.code]).toEqual([400, -32004])
  await documentMaker()
  expect(await winner(letter)).toBe('document-maker')
  expect(hello.sent()).toHaveLength(1)
})

test('five well-rated greetings from two callers do not raise hello for a letter signed with one of their names', async () => {
  await agent('calculator', 'Calculates sums')
  for (const [at, name] of ['Ada', 'Bob', 'Ada', 'Carol', 'Ada'].entries())
    await completed('hello', name, at % 2 === 0 ? 'alice' : 'bob', 5)
  expect((await call('message/send', saying(letter))).json.error.code).toBe(-32004)
})

test('after document-maker completes one task, an article to be summarised does not become a PDF', async () => {
  await documentMaker()
  const about = 'Sums up long texts: articles, reports, minutes, letters, in as many sentences as you like'
  await agent('summarizer', about, { skills: [summarize] })
  await completed('document-maker', articleAsPdf)
  expect(await winner(article)).toBe('summarizer')
})

test('an article that no agent can summarise does not become a PDF', async () => {
  const maker = await documentMaker()
  await completed('document-maker', articleAsPdf)
  const refused = await call('message/send', saying(article))
  expect([refused.json.error?.code, maker.sent().length]).toEqual([-32004, 1])
})
