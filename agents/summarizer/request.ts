import { isWish, lengthWishOf } from './length-wish.ts'

/** A message, split into instruction and text. Either may be empty. */
export interface Request {
  instruction: string
  body: string
}

const longestInstruction = 240

// Words that may precede the verb of a request; an article that starts with "The summary of" is not a request.
const leadingWords = [
  'please|kindly|hi|hello|hey|can|could|would|will|you|i|we|need|want|like|to|give|get|me|us|write|make|create|provide',
  'now|then|and|again|just|in|into|of|a|an|short|brief|quick|concise|one|two|three|four|five|\\d+|sentences?|words|bullet|points',
  'bitte|kannst|könntest|können|du|sie|mir|uns|gib|schreib\\p{L}*|eine|einen|einem|ein|zwei|drei|kurze?|sätzen?|satz',
  "peux|pouvez|tu|vous|fais|faites|moi|un|une|deux|trois|en|phrases?|s'il|te|plaît|puedes|puede|por|favor|haz|hazme",
  'dos|tres|frases?|puoi|per|favore|fammi|due|tre|frasi|kun|je|alsjeblieft|maak|een|пожалуйста|сделай\\p{L}*|можешь|дай',
].join('|')

const requestWords = [
  'summ?ar(?:y|ies|i[sz]\\p{L}*)|sum(?:s|ming)?\\s+(?:\\p{L}+\\s+){0,4}up|tl;?\\s?dr|condense|shorten|abridge|boil\\p{L}*\\s|digest',
  '(?:the\\s+)?(?:key|main)\\s+(?:points|ideas|sentences|takeaways)|the\\s+gist|the\\s+essentials|outline',
  'zusammenfass\\p{L}*|zusammenzufassen|fass\\p{L}*|kürz\\p{L}*|résum\\p{L}*|resum\\p{L}*|riassum\\p{L}*|riassunto|sintesi\\p{L}*',
  'sintetizz\\p{L}*|samenvat\\p{L}*|vat\\s|sammanfatt\\p{L}*|podsumuj|podsumowanie|streść|streszczenie|sintetiz\\p{L}*',
  'резюм\\p{L}*|кратко|подытож\\p{L}*|обобщи\\p{L}*|сократи\\p{L}*|περίληψη',
].join('|')

const request = new RegExp(`^[\\s\\W]*(?:(?:${leadingWords})[\\s,]+){0,10}(?:${requestWords})`, 'iu')
const eastAsianRequest = /要約|まとめて|总结|總結|概括|摘要|요약/u

const isRequest = (text: string): boolean =>
  text.length <= longestInstruction && (request.test(text) || eastAsianRequest.test(text))

/** Separates “sum this up in two sentences: …” (or the same after the text) from the text itself. */
export function splitRequest(message: string): Request {
  const text = message.trim()
  return atColon(text) ?? atFirstLine(text) ?? atLastLine(text) ?? atFirstSentence(text) ?? whole(text)
}

/** Treats a short message that comes with a file or a referenced task as an instruction. */
export function instructionBeside(message: string): Request {
  const split = splitRequest(message)
  const short = split.instruction === '' && split.body.length <= longestInstruction
  return short ? { instruction: split.body, body: '' } : split
}

function atColon(text: string): Request | undefined {
  const colon = text.slice(0, longestInstruction + 1).search(/[:：]/u)
  if (colon < 1) return undefined
  const instruction = text.slice(0, colon)
  const body = text.slice(colon + 1).trim()
  if (instruction.includes('\n') || body === '' || !isRequest(instruction)) return undefined
  return { instruction, body }
}

function atFirstLine(text: string): Request | undefined {
  const end = text.indexOf('\n')
  if (end < 1) return undefined
  const instruction = text.slice(0, end).trim()
  return isRequest(instruction) ? { instruction, body: text.slice(end).trim() } : undefined
}

function atLastLine(text: string): Request | undefined {
  const start = text.lastIndexOf('\n')
  if (start < 1) return undefined
  const instruction = text.slice(start).trim()
  return isRequest(instruction) ? { instruction, body: text.slice(0, start).trim() } : undefined
}

function atFirstSentence(text: string): Request | undefined {
  const end = /[.!?]\s+/u.exec(text.slice(0, longestInstruction))
  if (end === null) return undefined
  const instruction = text.slice(0, end.index + 1)
  const body = text.slice(end.index + end[0].length).trim()
  if (!isRequest(instruction) || body.length < 80) return undefined
  return { instruction, body }
}

function whole(text: string): Request {
  const wishAlone = text.length <= 80 && isWish(lengthWishOf(text))
  return isRequest(text) || wishAlone ? { instruction: text, body: '' } : { instruction: '', body: text }
}
