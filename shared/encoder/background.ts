import { readFile } from 'node:fs/promises'

/** Skills of many kinds, which another encoder embeds as its background (`SentenceEncoder.background`). Empty if the file is missing. */
export async function backgroundTexts(): Promise<string[]> {
  const text = await readFile(new URL('./model/background.txt', import.meta.url), 'utf8').catch(() => '')
  return text.split('\n').filter((line) => line !== '')
}
