import { expect, test } from 'vitest'
import { instructionBeside, splitRequest } from './request.ts'

const markdown = '# Minutes\n\n- one\n- two'

test.each([
  [`Turn this into a PDF: ${markdown}`, 'Turn this into a PDF'],
  [`Please make a PDF of the following text:\n\n${markdown}`, 'Please make a PDF of the following text'],
  [`Can you create a document from this\n${markdown}`, 'Can you create a document from this'],
  [`Erstelle bitte ein PDF-Dokument daraus:\n${markdown}`, 'Erstelle bitte ein PDF-Dokument daraus'],
  [`PDF please\n${markdown}`, 'PDF please'],
])('%j: separates the instruction from the Markdown', (message, instruction) => {
  expect(splitRequest(message)).toEqual({ instruction, body: markdown })
})

test.each([
  markdown,
  'Make hay while the sun shines.',
  'Dear all: the report is late.',
  '# Make a PDF\n\ntext',
  'See https://example.org/make',
])('keeps Markdown without an instruction: %j', (message) =>
  expect(splitRequest(message)).toEqual({ instruction: '', body: message }),
)

test.each(['Make me a PDF', 'Convert this to PDF, please', 'as a PDF'])(
  'an instruction alone has no text: %s',
  (message) => {
    expect(splitRequest(message)).toEqual({ instruction: message, body: '' })
  },
)

test('a plain line sent with files is an instruction, but Markdown is not', () => {
  expect(instructionBeside('Bind these nicely').body).toBe('')
  expect(instructionBeside(markdown).body).toBe(markdown)
  expect(instructionBeside('**Note** for all').body).toBe('**Note** for all')
})
