import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { CommandFailed } from '../terminal/faults.ts'
import { agentSource, readmeSource, skillSource, type TestRunner, testSource } from './templates.ts'
import { writeNew } from './write-new.ts'

/** Writes the files of a new agent to its folder. */
export async function writeAgent(folder: string, name: string, runner: TestRunner): Promise<string[]> {
  const files: [string, string][] = [
    [path.join(folder, 'agent.ts'), agentSource(name)],
    [path.join(folder, 'agent.test.ts'), testSource(runner)],
    [path.join(folder, 'skills', `${name}.md`), skillSource(name)],
    [path.join(folder, 'README.md'), readmeSource(name)],
  ]
  for (const [file, text] of files) {
    if (!(await writeNew(file, text))) throw new CommandFailed(`${file} exists already.`)
  }
  return files.map(([file]) => file)
}

/** Creates the folder of a new agent. @throws CommandFailed if the name already exists */
export async function makeAgentFolder(cwd: string, name: string): Promise<string> {
  const folder = path.join(cwd, 'agents', name)
  try {
    await mkdir(path.dirname(folder), { recursive: true })
    await mkdir(folder)
    await mkdir(path.join(folder, 'skills'))
    return folder
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    throw new CommandFailed(
      code === 'EEXIST' ? `${folder} exists already.` : `${folder} cannot be made (${code}).`,
    )
  }
}
