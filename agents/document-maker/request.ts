/** A message, split into instruction and Markdown. Either may be empty. */
export interface Request {
  instruction: string
  body: string
}

const longestInstruction = 240

const polite =
  "please|kindly|hi|hello|hey|can|could|would|will|you|i|we|need|want|like|to|now|then|bitte|kannst|können|du|sie|peux|pouvez|tu|vous|s'il|te|plaît|puedes|por|favor|puoi|per|favore"
const verbs =
  'make|create|generate|build|produce|write|convert|turn|render|typeset|format|export|print|save|prepare|give|get|put|transform|compile|mach\\p{L}*|erstell\\p{L}*|erzeug\\p{L}*|wandle?|setze?|fais|faites|crée[rz]?|convert\\p{L}*|génère|haz|hazme|crea|genera|fammi|сделай\\p{L}*|создай\\p{L}*'
const things =
  'pdf|document|report|paper|dokument|bericht|rapport|documento|informe|relazione|документ|отч[её]т'

const request = new RegExp(
  `^[\\s\\W]*(?:(?:${polite})[\\s,]+){0,8}(?:${verbs})(?!\\p{L})[^]{0,160}(?<!\\p{L})(?:${things})s?(?!\\p{L})`,
  'iu',
)
const bare = /^\W*(?:as |to |in |als |en |como )?(?:an? )?pdf(?: please| bitte)?\W*$/i

const isRequest = (text: string): boolean =>
  text.length <= longestInstruction && (request.test(text) || bare.test(text))

/** Separates an instruction such as “turn this into a PDF: …” from the Markdown. */
export function splitRequest(message: string): Request {
  const text = message.trim()
  if (isRequest(text) && !text.includes('\n') && !/[:：]\s*\S/u.test(text))
    return { instruction: text, body: '' }
  return atColon(text) ?? atFirstLine(text) ?? { instruction: '', body: text }
}

/** Whether the text is an instruction: a short line without Markdown, sent with files or referenced tasks. */
export function instructionBeside(message: string): Request {
  const split = splitRequest(message)
  const plain = split.body.length <= longestInstruction && !/\n|^#|[*_`|]/.test(split.body)
  return split.instruction === '' && plain ? { instruction: split.body, body: '' } : split
}

function atColon(text: string): Request | undefined {
  const line = text.slice(0, longestInstruction + 1).split('\n', 1)[0] as string
  const colon = line.search(/[:：](?:\s|$)/u)
  if (colon < 1 || !isRequest(line.slice(0, colon))) return undefined
  const body = text.slice(colon + 1).replace(/^[ \t]*\n+|^[ \t]+/, '')
  return { instruction: line.slice(0, colon), body }
}

function atFirstLine(text: string): Request | undefined {
  const end = text.indexOf('\n')
  if (end < 1 || text.startsWith('#') || !isRequest(text.slice(0, end))) return undefined
  return { instruction: text.slice(0, end).trim(), body: text.slice(end).trim() }
}
