import { expect, test } from 'vitest'
import { instructionBeside, splitRequest } from './request.ts'

const article =
  'The mill was built in 1840. It ground flour for the whole valley until the flood came in 1911.'

test.each([
  [`Sum this up in two sentences: ${article}`, 'Sum this up in two sentences'],
  [`Please summarize the following text.\n\n${article}`, 'Please summarize the following text.'],
  [`${article}\n\nTL;DR please`, 'TL;DR please'],
  [`Can you give me a short summary of this: ${article}`, 'Can you give me a short summary of this'],
  [`Key points: ${article}`, 'Key points'],
  [`Summarise it. ${article}`, 'Summarise it.'],
  [`Fasse den Text in drei Sätzen zusammen: ${article}`, 'Fasse den Text in drei Sätzen zusammen'],
  [`Résume cet article en deux phrases : ${article}`, 'Résume cet article en deux phrases '],
  [`Resume este texto en una frase: ${article}`, 'Resume este texto en una frase'],
  [`Кратко перескажи: ${article}`, 'Кратко перескажи'],
  [`次の文を要約してください：${article}`, '次の文を要約してください'],
])('%s: separates the instruction from the text', (message, instruction) => {
  expect(splitRequest(message)).toEqual({ instruction, body: article })
})

test.each([
  article,
  'The summary of our work: three mills were repaired, two were sold, and one burnt down in the summer.',
  'Dear all: the meeting is on Monday. Bring the reports that you were given last week, and the keys.',
  'Opening hours: Monday to Friday.\nThe museum is closed in winter.',
])('keeps a text without an instruction: %s', (message) => {
  expect(splitRequest(message)).toEqual({ instruction: '', body: message })
})

test.each([
  'Sum this up',
  'In two sentences, please',
  'tl;dr',
  'Now in one sentence',
  'Please summarize the article',
])('reads %s as an instruction without a text', (message) =>
  expect(splitRequest(message)).toEqual({ instruction: message, body: '' }),
)

test('a short message sent with a file is an instruction', () => {
  expect(instructionBeside('What is in there?')).toEqual({ instruction: 'What is in there?', body: '' })
  expect(instructionBeside(`Sum up: ${article}`).body).toBe(article)
  expect(instructionBeside(article.repeat(4)).body).toBe(article.repeat(4))
})
