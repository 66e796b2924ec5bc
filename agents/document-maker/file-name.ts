/** Derives a file name from the title: letters and digits of any script, separated by dashes. */
export function fileName(title: string | undefined): string {
  const words =
    (title ?? '')
      .normalize('NFC')
      .toLowerCase()
      .match(/[\p{L}\p{M}\p{N}]+/gu) ?? []
  let name = ''
  for (const word of words) {
    const longer = name === '' ? word.slice(0, 60).toWellFormed().replace('\uFFFD', '') : `${name}-${word}`
    if (longer.length > 60) break
    name = longer
  }
  return `${name === '' ? 'document' : name}.pdf`
}
