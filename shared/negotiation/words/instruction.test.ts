import { expect, test } from 'vitest'
import { taskTextOf } from './instruction.ts'

const article =
  'The council met on Tuesday to discuss the new budget. Members disagreed about the cost of the bridge, which has risen by a third since spring. The mayor said that work would begin in May regardless. Several residents spoke against the plan and called for a vote. A decision is expected before the end of the year, according to the clerk, who added that the report on taxes would be published soon.'
const table = 'month,sales\nJan,12\nFeb,15\nMar,9'

const cases: [text: string, instruction: string, payload: string][] = [
  // After a colon
  [`summarise this article: ${article}`, 'summarise this article', article],
  [`Summarise: ${article}`, 'Summarise', article],
  [
    `make a pdf of this text: Dear Sir, thank you for the letter.\nYours, Priya`,
    'make a pdf of this text',
    'Dear Sir, thank you for the letter.\nYours, Priya',
  ],
  [
    `Make a summary of this: ${article}\n\nCan you keep it short?`,
    'Make a summary of this\nCan you keep it short?',
    article,
  ],
  [
    `Fasse diesen Text in drei Sätzen zusammen: ${article}`,
    'Fasse diesen Text in drei Sätzen zusammen',
    article,
  ],
  [`Résume cet article en deux phrases : ${article}`, 'Résume cet article en deux phrases', article],
  [`Resume este artículo en dos frases: ${article}`, 'Resume este artículo en dos frases', article],
  [
    '请总结下面的文章：市议会星期二开会讨论新的预算。成员们对大桥的费用意见不一。',
    '请总结下面的文章',
    '市议会星期二开会讨论新的预算。成员们对大桥的费用意见不一。',
  ],
  [
    '次の文章を要約してください：市議会は火曜日に新しい予算について話し合いました。',
    '次の文章を要約してください',
    '市議会は火曜日に新しい予算について話し合いました。',
  ],
  [`لخص هذا المقال: ${article}`, 'لخص هذا المقال', article],
  // Before or after paragraphs
  [`${article}\n\nCan you shorten this?`, 'Can you shorten this?', article],
  [`tl;dr\n\n${article}`, 'tl;dr', article],
  [
    `Hi Priya,\n\ncould you please sum up the article below?\n\n${article}\n\nThanks,\nTom`,
    'could you please sum up the article below?',
    article,
  ],
  [`${article} Please make a summary of this article.`, 'Please make a summary of this article.', article],
  [`${article}\n\nKannst du das kürzen?`, 'Kannst du das kürzen?', article],
  // Tables, data and code
  [`What stands out here?\n${table}`, 'What stands out here?', table],
  [
    'Turn this table into a nice report\n| a | b |\n|---|---|\n| 1 | 2 |',
    'Turn this table into a nice report',
    '| a | b |\n|---|---|\n| 1 | 2 |',
  ],
  [
    'Average of these rows: [{"a":1,"b":2},{"a":3,"b":4}]',
    'Average of these rows:',
    '[{"a":1,"b":2},{"a":3,"b":4}]',
  ],
  ['fix this code\n```python\nprint(1)\n```', 'fix this code', 'print(1)'],
  // Quotations and quoted mail
  [
    'Count the words of “the quick brown fox jumps over the lazy dog again”',
    'Count the words of',
    'the quick brown fox jumps over the lazy dog again',
  ],
  [
    'Here is the chat:\n> Anna: hi\n> Tom: are we on?\nplease list the decisions',
    'Here is the chat:\n\n\nplease list the decisions',
    '> Anna: hi\n> Tom: are we on?',
  ],
]

test.each(cases)('%j has the instruction %j', (text, instruction, payload) => {
  const read = taskTextOf(text)
  expect(read.instruction).toBe(instruction)
  expect(read.payload.replace(/\s+/gu, ' ')).toContain(payload.replace(/\s+/gu, ' ').slice(0, 60))
})

const wholes = [
  'Question: what is 15 % of 80, and how much is left of it then?',
  'Convert to euros: 12 dollars',
  'a = 3; b = 4; sqrt(a^2 + b^2)',
  '[1, 2; 3, 4] * [5; 6]',
  'Please do the following: calculate the average of the column, draw a chart of it and put both into a report.',
  'I am planning a trip with my family. We like museums, good food and long walks, and we would rather not drive. Could you find a flight to Rome in May? Then book a hotel near the centre for four nights, and list what there is to see on each day, with prices for two adults and two children, so that we can decide on Sunday.',
  '😀😀😀',
  '',
  ' ',
  'Hello,',
  article,
]

test.each(wholes)('%j is an instruction as a whole', (text) => {
  expect(taskTextOf(text)).toMatchObject({ instruction: text, payload: '' })
})

test.each([
  [`What stands out?\n${table}`, 'text/csv'],
  ['Describe\na\tb\n1\t2', 'text/tab-separated-values'],
  ['Describe {"a": [1, 2]}'.replace(' {', '\n{'), 'application/json'],
  ['Typeset\n```markdown\n# A\n```', 'text/markdown'],
])('the form of the material in %j shows the type %s', (text, type) => {
  expect(taskTextOf(text).types).toEqual([type])
})

test('material without an instruction is an instruction of its type', () => {
  expect(taskTextOf(table)).toEqual({ instruction: table, payload: '', types: ['text/csv'] })
})

test.each([
  '«',
  '“',
  '„',
  '"',
  '```\n',
  '~~~',
  '{',
  '[{',
  ': ',
  'a: ',
  '? ',
  ',\n',
  'a,b\n',
  '> x\n',
  'please ',
  '\n\n',
  "' ",
])('a hundred thousand times %j is read within the time limit', (piece) => {
  const text = piece.repeat(Math.ceil(100_000 / piece.length))
  expect(taskTextOf(text).instruction.length).toBeLessThanOrEqual(100_000)
})
