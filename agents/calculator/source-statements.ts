/** Splits a program into statements at line breaks and `;` outside brackets and quotes, and removes comments. */
export function sourceStatements(source: string): string[] {
  const statements: string[] = []
  let depth = 0
  let quote = ''
  let current = ''
  const end = () => {
    const text = current.trim()
    if (text) statements.push(text)
    current = ''
  }
  for (const sign of source.replace(/#.*$/gm, '')) {
    if (quote) quote = sign === quote ? '' : quote
    // A single quote after a value is the transpose operator.
    else if (sign === '"' || (sign === "'" && !/[\w)\].']$/.test(current))) quote = sign
    else if ('([{'.includes(sign)) depth += 1
    else if (')]}'.includes(sign)) depth -= 1
    else if (depth === 0 && (sign === ';' || sign === '\n')) {
      end()
      continue
    }
    current += sign
  }
  end()
  return statements
}
