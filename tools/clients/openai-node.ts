import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import OpenAI, { AuthenticationError, NotFoundError } from 'openai'
import type { ClientStep, ClientTarget, TestedClient } from './step.ts'

const sales = path.join(import.meta.dirname, '..', '..', 'examples', 'sales.csv')

const clientOf = ({ gateway, token }: ClientTarget) =>
  new OpenAI({ baseURL: `${gateway}v1`, apiKey: token === '' ? 'none' : token, maxRetries: 0 })

const ask = (content: string) => [{ role: 'user' as const, content }]

const steps: readonly ClientStep[] = [
  {
    name: 'models',
    run: async (target) => {
      const ids = (await clientOf(target).models.list()).data.map(({ id }) => id)
      for (const id of ['auto', 'calculator'])
        assert.ok(ids.includes(id), `${id} is not in ${ids.join(', ')}`)
    },
  },
  {
    name: 'chat',
    run: async (target) => {
      const { choices, usage } = await clientOf(target).chat.completions.create({
        model: 'calculator',
        messages: ask('calculate 6*7'),
      })
      assert.match(choices[0]?.message.content ?? '', /42/)
      assert.equal(choices[0]?.finish_reason, 'stop')
      assert.equal(typeof usage?.total_tokens, 'number')
    },
  },
  {
    name: 'chat, streamed, with auto',
    run: async (target) => {
      const stream = await clientOf(target).chat.completions.create({
        model: 'auto',
        messages: ask('calculate 6*7'),
        stream: true,
        stream_options: { include_usage: true },
      })
      const chunks = []
      for await (const chunk of stream) chunks.push(chunk)
      assert.match(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join(''), /42/)
      assert.ok(chunks.some(({ choices }) => choices[0]?.finish_reason === 'stop'))
      assert.equal(typeof chunks.at(-1)?.usage?.total_tokens, 'number')
    },
  },
  {
    name: 'question, answered by the next message',
    run: async (target) => {
      const client = clientOf(target)
      const first = ask('calculate x^2 + 1')
      const asked = await client.chat.completions.create({ model: 'calculator', messages: first })
      const question = { role: 'assistant' as const, content: asked.choices[0]?.message.content ?? '' }
      assert.match(question.content, /x/)
      const messages = [...first, question, ...ask('5')]
      const answered = await client.chat.completions.create({ model: 'calculator', messages })
      assert.match(answered.choices[0]?.message.content ?? '', /26/)
    },
  },
  {
    name: 'file in',
    run: async (target) => {
      const data = (await readFile(sales)).toString('base64')
      const file = { filename: 'sales.csv', file_data: `data:text/csv;base64,${data}` }
      const content = [
        { type: 'text' as const, text: 'what stands out?' },
        { type: 'file' as const, file },
      ]
      const messages = [{ role: 'user' as const, content }]
      const { choices } = await clientOf(target).chat.completions.create({ model: 'data-analyst', messages })
      assert.match(choices[0]?.message.content ?? '', /sales|month|revenue/i)
    },
  },
  {
    name: 'responses',
    run: async (target) => {
      const client = clientOf(target)
      const { output_text, status } = await client.responses.create({
        model: 'calculator',
        input: 'calculate 6*7',
      })
      assert.match(output_text, /42/)
      assert.equal(status, 'completed')
    },
  },
  {
    name: 'responses, streamed, continued',
    run: async (target) => {
      const client = clientOf(target)
      const asked = await client.responses.create({ model: 'calculator', input: 'calculate x^2 + 1' })
      const stream = client.responses.stream({
        model: 'calculator',
        input: '5',
        previous_response_id: asked.id,
      })
      assert.match((await stream.finalResponse()).output_text, /26/)
    },
  },
  {
    name: 'unknown model',
    run: async (target) => {
      const call = clientOf(target).chat.completions.create({
        model: 'unknown-agent',
        messages: ask('hello'),
      })
      await assert.rejects(
        call,
        (error) => error instanceof NotFoundError && error.code === 'model_not_found',
      )
    },
  },
  {
    name: 'missing credentials',
    run: async (target) => {
      await assert.rejects(
        clientOf({ ...target, token: '' })
          .models.list()
          .asResponse(),
        AuthenticationError,
      )
    },
  },
]

/** npm `openai`, Apache-2.0. */
export const openaiNode: TestedClient = { name: 'openai 6.49 (npm)', steps }
