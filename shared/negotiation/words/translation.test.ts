import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { languages } from './function-words.ts'
import { languageOf } from './language.ts'
import { foreignWordsOf, inEnglish } from './translation.ts'

test.each([
  ['an imperative', 'Erstelle eine Rechnung', 'create bill invoice'],
  ['a verb in two parts', 'Fass den Bericht zusammen', 'summary summarization report'],
  ['an infinitive with zu', 'Hilf mir, den Text zusammenzufassen', 'help me , lyrics summarize'],
  ['inflected words', 'Übersetze diese Verträge', 'translate this contract compatibility'],
  ['a compound', 'Ich brauche Kundenberichte', 'i need customer report'],
  ['a compound of which only the end is known', 'Zeichne ein Streudiagramm', 'draw streudiagramm chart'],
  ['no umlauts', 'Bitte uebersetze das', 'please request translate'],
  ['capital letters', 'GIB MIR DIE DATEN', 'give enter me data'],
  [
    'a name',
    'Brief an Frau Müller, bitte als PDF',
    'letter mail on women female Müller , please request as PDF',
  ],
  ['an imperative', 'Résumez ce rapport', 'summarize report ratio'],
  ['a pronoun after a hyphen', 'Dis-moi quelle heure il est', 'say tell me which time hours he is'],
  ['an elision', "Traduis l'article en anglais", 'translate articles item english'],
  ['a name', 'Traduis la lettre de Pierre Dupont', 'translate letter from Pierre Dupont'],
  ['pronouns after a verb', 'Búscame hoteles en Barcelona', 'find hoteles in Barcelona'],
  ['inflected words', 'Traduce las cartas de Ana García', 'translate letter card from Ana García'],
  ['an international word', 'las tradiciones de mi ciudad', 'tradition from my city'],
  [
    'the article and inflected words',
    'ترجم هذه الرسائل إلى الإنجليزية',
    'translate compile this message to english',
  ],
  ['an imperative', 'لخص التقرير', 'summarize report'],
  ['Latin letters', 'احسب الضرائب باستخدام Excel', 'calculate count taxes using Excel'],
  ['an imperative', '翻译这封信', 'translate this letter'],
  ['traditional characters', '計算這個月的支出', 'calc calculate this month spending expenditure'],
  ['Latin letters', '用Excel计算工资', 'using Excel calculate calc salary paycheck'],
  ['a segment of two words', '我想订机票', 'i think want flight'],
  ['an inflected verb', 'この手紙を翻訳してください', 'this letter translate please give'],
  ['a compound', '天気予報を調べたい', 'weather forecast check'],
  ['Latin letters', 'PDFを要約して', 'PDF summary summarization'],
])('%s: %s', (_, text, english) => {
  expect(inEnglish(text)).toBe(english)
})

test.each([
  '',
  '😀🎵',
  '12 * 30',
  'Translate the letter of Frau Müller to German',
  'What does 谢谢 mean?',
  'Find a hotel in Rio de Janeiro, near La Plaza',
  'résumé',
  'Die Hard',
  'chat',
  'PDF converter',
  'hang order 22b2da2d-ed62-463b-aeec-13b7e26ec92b',
  'hang order ec87f1e1-1da9-41a6-8124-3c99811da67c',
  'find commit 9fceb02d0ae598e95dc970b74767f19372d61af8',
  'check room da7 and seat es2',
  'AI Equity Research Assistant (AI-ERA)',
  'Сделай краткое изложение',
  '요약해 주세요',
])('%j is not translated', (text) => {
  expect(inEnglish(text)).toBe(text)
})

test.each([
  ['de', 'Bitte fasse diesen langen Text für mich zusammen. '],
  ['fr', 'Veuillez résumer ce long texte pour moi. '],
  ['es', 'Por favor, resume este texto largo para mí. '],
  ['ar', 'من فضلك لخص هذا النص الطويل. '],
  ['zh', '请帮我总结这篇很长的文章。'],
  ['ja', 'この長い文章を要約してください。'],
])('a text of a megabyte in %s is translated in part', (language, sentence) => {
  const text = sentence.repeat(1_000_000 / sentence.length)
  expect(languageOf(text)).toBe(language)
  expect(inEnglish(text)).toMatch(/summar/)
  expect(inEnglish(text).length).toBeLessThan(50_000)
})

test.each([
  'ü'.repeat(1_000_000),
  "l'".repeat(500_000),
  `der die das a${'-a'.repeat(500_000)}`,
  `fasse die ${'zusammen und '.repeat(80_000)}`,
  '一丁七万丈'.repeat(200_000),
])('a text without an end is read in part (case %#)', (text) => {
  expect(inEnglish(text).length).toBeLessThanOrEqual(text.length)
})

test('the words of a text are found for their English words', () => {
  const words = foreignWordsOf('Übersetze den Brief')
  expect([words.get('translate'), words.get('letter')]).toEqual(['Übersetze', 'Brief'])
  expect(foreignWordsOf('translate the letter').size).toBe(0)
})

test.each(languages)('the list %s is sorted, and each word occurs once in a line', (language) => {
  const lines = readFileSync(new URL(`./lexicon/${language}.txt`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
  expect(lines.map((line) => line.split('\t')[0])).toEqual(
    lines.map((line) => line.split('\t')[0]).toSorted((a, b) => ((a ?? '') < (b ?? '') ? -1 : 1)),
  )
  for (const line of lines) {
    expect(line).toMatch(/^[a-z]+\t[^\s,]+(?:,[^\s,]+)*$/u)
    const words = line.split('\t')[1]?.split(',') ?? []
    expect(new Set(words).size).toBe(words.length)
  }
})
