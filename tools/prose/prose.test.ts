import { readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { countFile, type FileCount, kinds, rateOf } from './count.ts'
import { type Kind, sentencesOf } from './passages.ts'
import { maxPer10000, repositoryFiles } from './prose.ts'

test('the odd words of the repository stay within the limit of 10 per 10,000', () => {
  const root = path.join(import.meta.dirname, '../..')
  const counts = repositoryFiles(root).map((file) =>
    countFile(file, readFileSync(path.join(root, file), 'utf8')),
  )
  for (const kind of kinds) {
    const { per10000 } = rateOf(counts, kind)
    expect(per10000, `${kind}: npm run prose lists the hits`).toBeLessThanOrEqual(maxPer10000)
  }
})

test('no pattern matches these ordinary sentences', () => {
  const ordinary = `
    // Returns the stored task, or undefined when the owner differs. Retries twice, then throws.
    // The command line prints one line of text; math.floor() rounds. Nothing changed, so return.
    // An object whose audience is a string. API stands for application programming interface.
    // Leaves the other fields alone. Reads all files at once. There is room for one more entry.
    // What happens if the store fails? Who can cancel a task?
    // Data is passed as soon as it is available. X lies within the range. Apart from that, set \`asked\` and \`told\`.
  `
  expect(hitsIn(ordinary)).toEqual([])
})

describe('odd words are found in comments', () => {
  test.each([
    ['// Told of each commit.', ['Told']],
    ['/** Nobody asked for it. */', ['Nobody', 'asked']],
    ['// What waits for it is not sent.', ['What waits']],
    ['// The gateway forwards it at once.', ['at once']],
    ['// For the owner of the task alone.', ['alone']],
    ['// Its place in this house.', ['house']],
    ['// The sentence goes on\n// in the next line of the comment: as\n// it is.', ['goes on', 'as it is']],
    ['/**\n * Leaves alone who\n * could not be reached.\n */', ['Leaves alone']],
    ['// Who may call, and how often.', ['Who']],
    ['// Of an answer to `admit`.', ['Of an']],
  ])('%j', (source, expected) => {
    expect(hitsIn(source)).toEqual(expected)
  })
})

describe('comments, strings and titles are distinguished', () => {
  test.each<[string, string, string, [Kind, string][]]>([
    [
      'a comment mark in a string',
      'a.ts',
      `f('see // the other page', /\\/\\/ no/)`,
      [['texts', 'see // the other page']],
    ],
    [
      'a string in a comment',
      'a.ts',
      `// say 'one two three' here`,
      [['comments', "say 'one two three' here"]],
    ],
    [
      'a template with code in its placeholder',
      'a.ts',
      'f(`the task ${id /* of it */} was not found`)',
      [
        ['comments', 'of it'],
        ['texts', 'the task X was not found'],
      ],
    ],
    [
      'keys, imports and single words',
      'a.ts',
      `import x from 'one two three'; f({ 'content-type': 'json' })`,
      [],
    ],
    ['SQL', 'a.ts', `run('SELECT id FROM tasks where owner is known')`, []],
    ['code spans', 'a.ts', '// Calls `nobody` and returns.', [['comments', 'Calls X and returns.']]],
    ['directives', 'a.ts', '// oxlint-disable-next-line no-console -- it prints', []],
    [
      'titles of a test file',
      'a.test.ts',
      `test.each([1])('adds one to %s', () => f('one two three four'))`,
      [['titles', 'adds one to %s']],
    ],
    [
      'Markdown without its code',
      'a.md',
      '# One title\n\ntext [here](http://a.b)\n```\ncode here\n```\n',
      [
        ['markdown', 'One title'],
        ['markdown', 'text [here'],
      ],
    ],
    [
      'cells of a table',
      'a.md',
      '| one cell | another |\n',
      [
        ['markdown', 'one cell'],
        ['markdown', 'another'],
      ],
    ],
    [
      'Python',
      'a.py',
      `"""Reads it."""\n# one\n# two\nx = '# none'\n`,
      [
        ['comments', '"""Reads it."""'],
        ['comments', 'one two'],
      ],
    ],
    [
      'sentences of one comment',
      'a.ts',
      '// One. Two!\n// Three\n',
      [
        ['comments', 'One.'],
        ['comments', 'Two!'],
        ['comments', 'Three'],
      ],
    ],
  ])('%s', (_, file, source, expected) => {
    const found = sentencesOf(file, source).map(({ kind, text }): [Kind, string] => [kind, text])
    expect(found).toEqual(expected)
  })
})

test('a hit has the line of its match', () => {
  const { hits } = countFile('a.ts', 'f()\n/**\n * One.\n *\n * Nothing but\n * this.\n */\n')
  expect(hits.map(({ line, match }) => [line, match])).toEqual([[5, 'Nothing but']])
})

test('the rate is the number of hits per 10,000 words of one kind', () => {
  const count: FileCount = countFile(
    'a.ts',
    "// It is done anew, in four words more.\nf('one two three four')\n",
  )
  expect(rateOf([count], 'comments')).toEqual({ words: 8, hits: 1, per10000: 1250 })
  expect(rateOf([count], 'texts')).toEqual({ words: 4, hits: 0, per10000: 0 })
})

test('a source that cannot be parsed is an error', () => {
  expect(() => countFile('a.ts', 'const = 1')).toThrow('a.ts cannot be parsed')
})

function hitsIn(source: string): string[] {
  return countFile('a.ts', source).hits.map(({ match }) => match.replace(/\s+/g, ' ').trim())
}
