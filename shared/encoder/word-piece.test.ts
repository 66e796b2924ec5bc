import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { WordPiece } from './word-piece.ts'

const vocabulary = readFileSync(new URL('./model/vocabulary.txt', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
const words = new WordPiece(vocabulary)

/** The ids that `BertWordPieceTokenizer` of the Python package `tokenizers` gives. */
const reference: [text: string, ids: number[]][] = [
  ['Summarise this article', [101, 7680, 7849, 5562, 2023, 3720, 102]],
  ["What's 15 % of 80?", [101, 2054, 1005, 1055, 2321, 1003, 1997, 3770, 1029, 102]],
  [
    'Fasse den Text in drei S\u00e4tzen zusammen',
    [101, 6904, 11393, 7939, 3793, 1999, 2852, 7416, 2938, 10431, 16950, 21559, 3549, 102],
  ],
  ['caf\u00e9 na\u00efve Z\u00fcrich', [101, 7668, 15743, 10204, 102]],
  [
    '\u8bf7\u603b\u7ed3\u4e0b\u9762\u7684\u6587\u7ae0',
    [101, 100, 100, 100, 1743, 1976, 1916, 1861, 1932, 102],
  ],
  [
    '\u6b21\u306e\u6587\u7ae0\u3092\u8981\u7d04\u3057\u3066\u304f\u3060\u3055\u3044',
    [101, 100, 1671, 1861, 1932, 1690, 100, 100, 1657, 30191, 30179, 30187, 30182, 30173, 102],
  ],
  [
    '\u0644\u062e\u0635 \u0647\u0630\u0627 \u0627\u0644\u0645\u0642\u0627\u0644',
    [101, 1294, 29821, 29826, 1297, 29822, 25573, 1270, 23673, 22192, 29834, 25573, 23673, 102],
  ],
  ['snake_case camelCase HTTP/2', [101, 7488, 1035, 2553, 19130, 18382, 8299, 1013, 1016, 102]],
  [
    'a+b=c; x<y && z>=0',
    [101, 1037, 1009, 1038, 1027, 1039, 1025, 1060, 1026, 1061, 1004, 1004, 1062, 1028, 1027, 1014, 102],
  ],
  ['\ud83d\ude00\ud83d\ude00 hello', [101, 100, 7592, 102]],
  [
    'don\u2019t \u201cquote\u201d \u2014 dash\u2026',
    [101, 2123, 1521, 1056, 1523, 14686, 1524, 1517, 11454, 1529, 102],
  ],
  ['1,234.56 \u20ac $12 \u00a33', [101, 1015, 1010, 22018, 1012, 5179, 1574, 1002, 2260, 28182, 102]],
  ['tab\tnew\nline\u00a0nbsp', [101, 21628, 2047, 2240, 1050, 5910, 2361, 102]],
  ['e\u0301 \u200b zero\u00adwidth', [101, 1041, 5717, 9148, 11927, 2232, 102]],
  ['\ufb01 ligature \u2167 \u00bd', [101, 1984, 8018, 11244, 100, 1092, 102]],
  [
    'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx word',
    [101, 100, 2773, 102],
  ],
  ['', [101, 102]],
  ['   ', [101, 102]],
  ['\u0000null', [101, 19701, 102]],
  [
    '\u0939\u093f\u0928\u094d\u0926\u0940 \u092d\u093e\u0937\u093e',
    [101, 1339, 29877, 29863, 29861, 29878, 1330, 29876, 29873, 29876, 102],
  ],
  [
    '\ud55c\uad6d\uc5b4 \ubb38\uc7a5',
    [
      101, 1469, 30006, 30021, 29991, 30014, 30020, 29999, 30008, 1459, 30014, 30021, 30000, 30006, 30025,
      102,
    ],
  ],
  ['\u0130stanbul \u00df \u1e9e \u03a9', [101, 9960, 1096, 1096, 1179, 102]],
  [
    '^caret `tick` ~tilde |pipe|',
    [101, 1034, 2729, 2102, 1036, 16356, 1036, 1066, 18681, 3207, 1064, 8667, 1064, 102],
  ],
  ["don't", [101, 2123, 1005, 1056, 102]],
  ['\ud835\udc9c math \ud800\udf48', [101, 100, 8785, 100, 102]],
]

test.each(reference)('%j has the ids of the reference tokenizer', (text, ids) => {
  expect(words.idsOf(text, 512)).toEqual(ids)
})

test('marks of the model in a text are plain text', () => {
  const marks = ['[CLS]', '[SEP]', '[MASK]', '[PAD]', '[UNK]'].map((mark) => vocabulary.indexOf(mark))
  const [, ...inside] = words.idsOf('[CLS] [SEP] [MASK] [PAD] [UNK]', 512).slice(0, -1)
  expect(inside.filter((id) => marks.includes(id))).toEqual([])
})

test('a long text is cut and keeps both marks', () => {
  const ids = words.idsOf('word '.repeat(50_000), 16)
  expect(ids).toHaveLength(16)
  expect([ids[0], ids.at(-1)]).toEqual([vocabulary.indexOf('[CLS]'), vocabulary.indexOf('[SEP]')])
})

test('a vocabulary without the marks is refused', () => {
  expect(() => new WordPiece(['a', 'b'])).toThrow('[CLS]')
})
