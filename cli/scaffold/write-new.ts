import { open } from 'node:fs/promises'
import { CommandFailed } from '../terminal/faults.ts'

/** Writes a file unless it already exists, in which case the function returns false. */
export async function writeNew(file: string, content: string | object): Promise<boolean> {
  const text = typeof content === 'string' ? content : `${JSON.stringify(content, null, 2)}\n`
  try {
    await using handle = await open(file, 'wx')
    await handle.writeFile(text)
    return true
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    throw new CommandFailed(`${file} cannot be written (${code}).`)
  }
}
