/** A request, separated into its instruction and the material that the instruction is about. */
export interface TaskText {
  /** The whole text if no material was found, or if nothing would be left. */
  instruction: string
  /** Pasted texts, tables, data and code. Empty if there is none. */
  payload: string
  /** Media types of the material that its form shows, such as `text/csv`. */
  types: readonly string[]
}

/** The characters of a text that are read. */
export const taskTextMaxChars = 100_000
/** The maximum length of an instruction before a colon, and of a paragraph that may be an instruction. */
const headWordsMax = 40
const headCharsMax = 1000
/** A tail after a colon with fewer words may be the object of the sentence: "Convert to euros: 12 dollars". */
const tailWordsMin = 6
const longQuoteWords = 8
/** Prose with fewer words is an instruction as a whole. */
const longProseWords = 60

const fence = /^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)/u
/** A quotation excludes its own opening mark, so that a text of such marks is read in linear time. */
const quotes =
  /"([^"]{20,20000})"|“([^“”"]{20,20000})[”"]|„([^„“”]{20,20000})[“”]|«([^«»]{20,20000})»|「([^「」]{10,20000})」|『([^『』]{10,20000})』/gu
const fenceTypes: Record<string, string> = {
  csv: 'text/csv',
  tsv: 'text/tab-separated-values',
  json: 'application/json',
  md: 'text/markdown',
  markdown: 'text/markdown',
  html: 'text/html',
  xml: 'application/xml',
}

/** Words before a colon that announce the instruction rather than the material. */
const labels =
  /^(?:(?:please|can you|could you|i need you to) )?(?:do|perform|complete|help(?: me)? with)(?: the following| this| these)?(?: tasks?| steps?| things?)?$|^(?:(?:my|the|our|user)\s+)?(?:question|task|request|prompt|query|instructions?|todo|to do|subject|hi|hello|dear \w+|frage|aufgabe|auftrag|anfrage|bitte|t[âa]che|demande|consigne|pregunta|tarea|petici[oó]n|任务|任務|問題|问题|质问|質問|依頼|مهمة|سؤال|طلب)$/iu
/** Words that refer to material in the same message. */
const refersToMaterial =
  /\b(?:the following|below|above|attached|(?:this|these|the|my|our|that) (?:\w+ )?(?:articles?|texts?|stor(?:y|ies)|tables?|reports?|data|e-?mails?|mails?|notes?|documents?|letters?|minutes|numbers|figures|list|paragraphs?|passages?|messages?|essays?|transcripts?|chats?|threads?|conversations?|memos?|posts?|speech|reviews?|code|log|files?|draft)|it|diese[nrsm]? \w+|folgende[nrsm]?|obige[nrsm]?|unten|oben|angehängte[nrsm]?|ce(?:t|tte|s)? \w+|suivante?s?|ci-dessous|ci-dessus|est[eao]s? \w+|siguientes?|adjunt[oa]s?|anterior)\b|下面|以下|上面|这|這|この|次の|上記|التالي|هذا|هذه/iu
/** Questions, and words with which people ask for work. */
export const asksForWork =
  /\?\s*$|？\s*$|؟\s*$|:\s*$|：\s*$|\b(?:please|pls|plz|can you|could you|would you|will you|i need|i want|i'd like|i would like|help me|let me know|kannst du|können sie|könnten sie|könntest du|bitte|ich brauche|ich möchte|peux-tu|pouvez-vous|pourriez-vous|s'il (?:te|vous) pla[iî]t|merci de|j'ai besoin|je voudrais|puedes|podr[ií]as|puede usted|por favor|necesito|quiero|quisiera)\b|请|請|帮我|幫我|ください|お願い|من فضلك/iu
/** Imperatives with which instructions begin. */
export const imperative =
  /^(?:and |then |now |also |just |quickly )*(?:analy[sz]e|answer|bind|book|build|calculate|check|classify|compare|compile|compute|condense|convert|count|create|describe|design|draft|draw|edit|estimate|evaluate|explain|export|extract|find|fix|forecast|format|generate|get|give|group|help|identify|list|look|make|order|parse|play|plot|predict|prepare|print|produce|project|put|read|render|reply|report|review|rewrite|run|say|schedule|search|send|set|shorten|show|simplify|solve|sort|split|sum|summari[sz]e|tell|tl;?dr|total|translate|turn|typeset|validate|visuali[sz]e|what|which|who|when|where|why|how|work out|write|analysiere|berechne|beschreibe|erkl[äa]re|erstelle|fasse|finde|gib|kürze|liste|mach|mache|prüfe|rechne|schreibe|suche|übersetze|vergleiche|wandle|zeichne|zeige|was|welche[rs]?|wie|warum|analyse[rz]?|calcule[rz]?|cherche|compare|convertis|crée[rz]?|décri[st]|dessine|donne|écri[st]|explique|fais|faites|liste|montre|prépare|résume[rz]?|traduis|transforme|trouve|quel(?:le)?s?|combien|comment|analiza|busca|calcula|compara|convierte|crea|describe|dibuja|dame|escribe|explica|haz|lista|muestra|prepara|resume|traduce|transforma|cu[aá]l(?:es)?|cu[aá]nto|qu[eé]|c[oó]mo)\b/iu
/** A line that only greets or thanks. */
export const salutation =
  /^(?:(?:dear|hi|hello|hey|good (?:morning|afternoon|evening)|hallo|guten (?:tag|morgen)|liebe[rs]?|sehr geehrte[rs]?|bonjour|salut|ch[eè]re?|hola|buenos d[ií]as|estimad[oa])\b[^\n.!?:]{0,40}[,!]?|(?:(?:best|kind|warm|many)\s+)?(?:yours|regards|sincerely|cheers|thanks|thank you|thx|love|greetings|viele grüße|mit freundlichen grüßen|vielen dank|danke|cordialement|merci|saludos|gracias)\b[^\n?]{0,60})$/iu

/**
 * Separates the instruction of a message from the text, table, data or code that it is about. Reads the form of the text: fences,
 * quotation marks, tables, JSON, quoted mail, a colon, paragraphs and the position of sentences that ask for something. Reads the first
 * 100,000 characters. The rules do not depend on the language, except for the words that ask for work, in English, German, French,
 * Spanish, Chinese, Japanese and Arabic.
 */
export function taskTextOf(text: string): TaskText {
  const material = new Material()
  let rest = text.slice(0, taskTextMaxChars).replaceAll('\r\n', '\n')
  rest = takeFenced(rest, material)
  rest = takeJson(rest, material)
  rest = takeTables(rest, material)
  rest = material.take(rest, quotes, (all: string) => (wordCount(all) >= longQuoteWords ? [all] : undefined))
  const instruction = withoutSalutations(takeProse(rest, material))
  if (material.isEmpty || !hasWords(instruction)) {
    const whole = text.slice(0, taskTextMaxChars)
    return { instruction: whole, payload: '', types: material.types }
  }
  return { instruction, payload: material.text, types: material.types }
}

/** The material found so far, in the order in which it was found. */
class Material {
  readonly #pieces: string[] = []
  readonly #types = new Set<string>()

  get isEmpty(): boolean {
    return this.#pieces.length === 0
  }

  get text(): string {
    return this.#pieces.join('\n')
  }

  get types(): string[] {
    return [...this.#types]
  }

  add(piece: string, type?: string): void {
    this.#pieces.push(piece)
    if (type !== undefined) this.#types.add(type)
  }

  /** Moves the matches for which `read` returns a piece here, and returns the other text. */
  take(
    text: string,
    pattern: RegExp,
    read: (...match: string[]) => readonly [piece: string, type?: string | undefined] | undefined,
  ): string {
    return text.replace(pattern, (...match: string[]) => {
      const found = read(...match)
      if (found === undefined) return match[0] as string
      this.add(...found)
      return '\n'
    })
  }
}

/** Blocks between two fences of Markdown. The last block may lack its end. */
function takeFenced(text: string, material: Material): string {
  if (!text.includes('```') && !text.includes('~~~')) return text
  const kept: string[] = []
  let open: { mark: string; type: string | undefined; lines: string[] } | undefined
  const close = () => {
    if (open !== undefined) material.add(open.lines.join('\n'), open.type)
    open = undefined
  }
  for (const line of text.split('\n')) {
    const [, mark, language = ''] = fence.exec(line) ?? []
    if (open === undefined && mark !== undefined)
      open = { mark, type: fenceTypes[language.toLowerCase()], lines: [] }
    else if (open === undefined) kept.push(line)
    else if (mark?.startsWith(open.mark) === true && language === '') close()
    else open.lines.push(line)
  }
  close()
  return kept.join('\n')
}

/** A value of JSON that begins a line or follows a colon. */
function takeJson(text: string, material: Material): string {
  const start = /(?:^|[:：])[ \t]*(?=\{\s*["}]|\[\s*[[{"\d-])/mu.exec(text)
  if (start === null) return text
  const from = start.index + start[0].length
  const close = text[from] === '{' ? '}' : ']'
  const end = text.lastIndexOf(close) + 1
  const piece = text.slice(from, end)
  if (!/^\s*\{|[{,]/u.test(piece) || !isJson(piece)) return text
  material.add(piece, 'application/json')
  return `${text.slice(0, from)}\n${text.slice(end)}`
}

function isJson(text: string): boolean {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}

const cellSeparators = ['\t', '|', ';', ','] as const
const cellCharsMax = 40
const rowsMin = 2

/** Runs of at least two lines with the same number of cells. */
function takeTables(text: string, material: Material): string {
  const lines = text.split('\n')
  const kept: string[] = []
  for (let at = 0; at < lines.length; ) {
    const end = endOfTable(lines, at)
    if (end === at) {
      kept.push(lines[at] as string)
      at += 1
      continue
    }
    const piece = lines.slice(at, end).join('\n')
    material.add(piece, piece.includes('\t') ? 'text/tab-separated-values' : 'text/csv')
    at = end
  }
  return kept.join('\n')
}

function endOfTable(lines: readonly string[], from: number): number {
  for (const separator of cellSeparators) {
    const cells = cellsIn(lines[from], separator)
    if (cells < 2) continue
    let end = from + 1
    while (end < lines.length && cellsIn(lines[end], separator) === cells) end += 1
    if (end - from >= (separator === ',' && cells < 3 && !hasNumbers(lines.slice(from, end)) ? 3 : rowsMin))
      return end
  }
  return from
}

const hasNumbers = (rows: readonly string[]) => rows.some((row) => /(?:^|,)\s*[-+$€£]?\d/u.test(row))

/** The number of cells of a row, or 0 if the line is prose. */
function cellsIn(line: string | undefined, separator: string): number {
  if (line === undefined || !line.includes(separator) || /[.!?:]\s*$/u.test(line)) return 0
  const cells = line.replace(/"[^"]*"/gu, 'x').split(separator)
  return cells.every((cell) => cell.trim().length <= cellCharsMax && !/[.!?]\s/u.test(cell))
    ? cells.length
    : 0
}

/** Separates the remaining prose, and returns the instruction. */
function takeProse(text: string, material: Material): string {
  const unquoted = material.take(text, /^>.*(?:\n>.*)*/gmu, (all) => [all])
  const afterColon = takeAfterColon(unquoted, material)
  if (afterColon !== undefined) return afterColon
  const words = wordCount(unquoted)
  if (words < longProseWords && material.isEmpty) return unquoted
  return takeParagraphs(unquoted, material)
}

/** `Summarise this article: …`, where the instruction may also continue after the article. */
function takeAfterColon(text: string, material: Material): string | undefined {
  for (const { index, 0: colon } of text.slice(0, headCharsMax).matchAll(/[:：](?=\s|$)|：/gu)) {
    const head = text.slice(0, index)
    if (wordCount(head) > headWordsMax) return undefined
    const line = head.slice(head.lastIndexOf('\n') + 1).trim()
    const tail = text.slice(index + colon.length)
    if (labels.test(line) || !hasWords(line) || opensQuotation(line)) continue
    if (wordCount(tail.slice(0, headCharsMax)) < tailWordsMin || !isInstruction(lastSentence(line))) continue
    const closing = closingRequest(tail)
    material.add(tail.slice(0, tail.length - closing.length))
    return `${head}\n${closing}`
  }
  return undefined
}

/** Whether a quotation begins in the line and does not end in it. */
const opensQuotation = (line: string) => /(?:^|\s)['‘"“„«][^'’"”“»]*$/u.test(line)

/** The last paragraph or the last sentences, if they ask for something. */
function closingRequest(tail: string): string {
  const last = tail.split(/\n\s*\n/u).at(-1) ?? ''
  if (last !== tail && isShortRequest(last)) return last
  const sentences = sentencesOf(last)
  let from = sentences.length
  while (from > 1 && isRequestOf(sentences[from - 1] as string)) from -= 1
  return sentences.slice(from).join('')
}

/** A short request before or after long paragraphs, or the sentences of a long text that refer to the rest. */
function takeParagraphs(text: string, material: Material): string {
  const paragraphs = text.split(/\n\s*\n|\n(?=\S)/u).filter((paragraph) => paragraph.trim() !== '')
  const requests = new Set(
    paragraphs.filter((paragraph, at) => isAtEdge(at, paragraphs.length) && isShortRequest(paragraph)),
  )
  if (requests.size > 0 && requests.size < paragraphs.length) {
    const others = paragraphs.filter((paragraph) => !requests.has(paragraph))
    if (
      wordCount(others.join(' ')) >= tailWordsMin &&
      (!material.isEmpty || wordCount(others.join(' ')) >= longProseWords / 2)
    ) {
      material.add(others.join('\n\n'))
      return [...requests].join('\n')
    }
  }
  if (paragraphs.length !== 1 || wordCount(text) < longProseWords) return text
  return takeSentences(text, material)
}

/** The sentences at either end that ask for work and refer to the text between them. */
function takeSentences(text: string, material: Material): string {
  const sentences = sentencesOf(text)
  const isRequest = (sentence: string, at: number) =>
    isAtEdge(at, sentences.length) && isRequestOf(sentence) && refersToMaterial.test(sentence)
  const requests = sentences.filter(isRequest)
  const others = sentences.filter((sentence, at) => !isRequest(sentence, at))
  if (requests.length === 0 || others.some((sentence) => asksForWork.test(sentence))) return text
  material.add(others.join(' '))
  return requests.join(' ')
}

const sentencesOf = (text: string): string[] => text.split(/(?<=[.!?]["”»]?\s)(?=\S)|(?<=[。！？])/u)
const isAtEdge = (at: number, length: number) => at < 2 || at >= length - 2
const isInstruction = (sentence: string) =>
  asksForWork.test(sentence) || imperative.test(sentence.trim()) || refersToMaterial.test(sentence)
const isShortRequest = (paragraph: string) =>
  wordCount(paragraph) <= headWordsMax && (salutation.test(paragraph.trim()) || isRequestOf(paragraph))
const isRequestOf = (paragraph: string) =>
  asksForWork.test(paragraph.trim()) || imperative.test(paragraph.trim())

const lastSentence = (line: string) => line.split(/(?<=[.!?。！？])\s*/u).at(-1) ?? ''

function withoutSalutations(text: string): string {
  const lines = text.split('\n')
  const kept = lines.filter((line) => !salutation.test(line.trim()))
  return (hasWords(kept.join('\n')) ? kept : lines).join('\n').trim()
}

const hasWords = (text: string) =>
  /\p{L}{2}|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u.test(text)

/** Characters of scripts without spaces count as half a word each. */
function wordCount(text: string): number {
  const spaced = text.match(/[\p{L}\p{N}'’-]+/gu) ?? []
  let count = 0
  for (const word of spaced) {
    const unspaced =
      word.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/gu)?.length ?? 0
    count += unspaced === 0 ? 1 : unspaced / 2
  }
  return count
}
