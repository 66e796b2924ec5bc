import { version } from '@parley/kit/process/version'
import { Command, CommanderError } from 'commander'
import { loadDotEnv } from './server/environment.ts'
import type { CliCommand } from './terminal/cli-command.ts'
import { faultOf, sentenceOf, UsageError } from './terminal/faults.ts'
import { type Io, processIo, say } from './terminal/io.ts'

type Make = (io: Io) => CliCommand

/** Every command, with what `parley --help` says of it. Only the one that was typed is loaded. */
const commands: Record<string, { usage?: string; summary: string; load: () => Promise<{ default: Make }> }> =
  {
    up: { summary: 'run the gateway and every agent of ./agents', load: () => import('./commands/up.ts') },
    gateway: { summary: 'run the gateway alone', load: () => import('./commands/gateway.ts') },
    agent: { usage: '<folder>', summary: 'run one agent alone', load: () => import('./commands/agent.ts') },
    agents: { summary: 'list the agents of the gateway', load: () => import('./commands/agents.ts') },
    send: {
      usage: '<agent> [text]',
      summary: 'send a message to an agent and show its answer',
      load: () => import('./commands/send.ts'),
    },
    negotiate: {
      usage: '<text>',
      summary: 'show which agents could do it, best first, and why',
      load: () => import('./commands/negotiate.ts'),
    },
    watch: {
      usage: '<task>',
      summary: 'follow a task until it ends',
      load: () => import('./commands/watch.ts'),
    },
    listen: {
      summary: 'receive webhooks and print their events',
      load: () => import('./commands/listen.ts'),
    },
    register: {
      usage: '<agent url>',
      summary: 'register an agent that runs elsewhere',
      load: () => import('./commands/register.ts'),
    },
    check: {
      usage: '<agent url>',
      summary: 'say what is well with an agent and what to mend',
      load: () => import('./commands/check.ts'),
    },
    admit: {
      usage: '<agent>',
      summary: 'let a registered agent have work (operator)',
      load: () => import('./commands/admit.ts'),
    },
    quarantine: {
      usage: '<agent>',
      summary: 'set an agent aside (operator)',
      load: () => import('./commands/quarantine.ts'),
    },
    release: {
      usage: '<agent>',
      summary: 'take an agent back from quarantine (operator)',
      load: () => import('./commands/release.ts'),
    },
    remove: {
      usage: '<agent>',
      summary: 'take an agent out of the registry (operator)',
      load: () => import('./commands/remove.ts'),
    },
    wallet: {
      summary: 'show the wallet that holds test money; make one',
      load: () => import('./commands/wallet.ts'),
    },
    payments: {
      usage: '[agent]',
      summary: 'list payments that are to be paid back (operator)',
      load: () => import('./commands/payments.ts'),
    },
    verify: {
      usage: '[task]',
      summary: 'verify an agent, and its answers, from the gateway’s document on',
      load: () => import('./commands/verify.ts'),
    },
    did: {
      usage: '[action] [agent]',
      summary: 'show, make and rotate identities',
      load: () => import('./commands/did.ts'),
    },
    migrate: {
      summary: 'move what is kept in a data folder to MongoDB (operator)',
      load: () => import('./commands/migrate.ts'),
    },
    token: { summary: 'print an access token', load: () => import('./commands/token.ts') },
    new: {
      usage: '<name>',
      summary: 'write the beginnings of an agent',
      load: () => import('./commands/new.ts'),
    },
  }

/** The command line. Resolves with the exit code: 0 done, 1 failed, 2 wrong use. */
export async function main(argv: string[], io: Io = processIo): Promise<number> {
  if (io.stdout === process.stdout) process.stdout.on('error', endWithoutReader)
  try {
    // A supervised agent gets its settings from the supervisor: what stands in .env is the gateway's.
    const supervised = argv[0] === 'agent' && process.channel !== undefined
    if (!supervised) loadDotEnv(io)
    const program = programWith(io)
    const command = await addCommands(program, argv, io)
    await program.parseAsync(argv, { from: 'user' })
    return command?.exitCode ?? 0
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
    if (argv.includes('--json')) io.stderr.write(`${JSON.stringify({ error: faultOf(thrown) })}\n`)
    else say(io, `parley: ${sentenceOf(thrown)}`)
    return thrown instanceof UsageError ? 2 : 1
  }
}

function programWith(io: Io): Command {
  return new Command('parley')
    .description('A front door to many agents: runs them, sends them work, follows it.')
    .version(version)
    .showHelpAfterError('(--help says more)')
    .addHelpText(
      'after',
      `
parley <command> --help says more. Exit codes: 0 done, 1 failed, 2 wrong use. With --json, results on stdout and errors on
stderr are JSON. .env in the working folder is read; the environment wins over it.`,
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
    })
}

/** The command that was typed in full, the others by name. */
async function addCommands(program: Command, argv: string[], io: Io): Promise<CliCommand | undefined> {
  const typed = argv.find((word) => !word.startsWith('-') && word !== 'help')
  let found: CliCommand | undefined
  for (const [name, { usage = '', summary, load }] of Object.entries(commands)) {
    const described = `${summary.slice(0, 1).toUpperCase()}${summary.slice(1)}.`
    if (name === typed) {
      found = (await load()).default(io).summary(summary).description(described)
      program.addCommand(found.copyInheritedSettings(program))
    } else {
      const other = program.command(name).summary(summary)
      // commander would split `<agent url>` at its space.
      for (const [argument] of usage.matchAll(/<[^>]+>|\[[^\]]+\]/g)) other.argument(argument)
    }
  }
  return found
}

/** `parley agents | head -1`: whoever read our output has enough. */
function endWithoutReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
