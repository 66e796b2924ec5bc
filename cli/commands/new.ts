import path from 'node:path'
import { InvalidArgumentError } from 'commander'
import { completeProject, readManifest } from '../scaffold/project.ts'
import { makeAgentFolder, writeAgent } from '../scaffold/write-agent.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'

export default function newCommand(io: Io): CliCommand {
  return new CliCommand('new')
    .argument('<name>', 'name of the agent: lower-case letters, digits and "-", a letter first', agentName)
    .option('--json', 'print the files written as JSON')
    .addHelpText(
      'after',
      `
Creates agents/<name>/ in the working folder with the agent, its skill, its test and a README. In a folder without a
project it also creates package.json, tsconfig.json and .gitignore; the package.json of "npm init -y" gets
"type": "module" and scripts. Existing files are never overwritten.`,
    )
    .run((name: string, options: { json?: true }) => scaffold(io, name, options))
}

async function scaffold(io: Io, name: string, options: { json?: true }): Promise<void> {
  const manifest = await readManifest(io.cwd)
  const folder = await makeAgentFolder(io.cwd, name)
  const project = await completeProject(io.cwd, manifest)
  const written = [...project.written, ...(await writeAgent(folder, name, project.testRunner))]
  const files = written.map((file) => path.relative(io.cwd, file))
  if (options.json) return printJson(io, { name, files, completed: project.completed })
  for (const file of files) print(io, `${file}\n`)
  for (const file of project.completed) say(io, `completed ${path.relative(io.cwd, file)}`)
  for (const hint of project.hints) say(io, hint)
  say(io, '\nRun it with:  npx parley up')
  say(io, `Ask it with:  npx parley send ${name} "Ada"`)
}

function agentName(text: string): string {
  if (!/^[a-z][a-z0-9-]{0,39}$/.test(text)) {
    throw new InvalidArgumentError(
      'It must be lower-case letters, digits and "-", a letter first, at most 40.',
    )
  }
  return text
}
