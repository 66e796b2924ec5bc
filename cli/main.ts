import { version } from '@parley/kit/process/version'
import { Command, CommanderError } from 'commander'
import { loadDotEnv } from './server/environment.ts'
import type { CliCommand } from './terminal/cli-command.ts'
import { faultOf, sentenceOf, UsageError } from './terminal/faults.ts'
import { type Io, processIo, say } from './terminal/io.ts'

type Make = (io: Io) => CliCommand

/** A command of the operator that sends one request about an agent. */
async function operator(action: 'admit' | 'quarantine' | 'release'): Promise<{ default: Make }> {
  const { operatorCommand } = await import('./server/operate.ts')
  return { default: (io) => operatorCommand(io, action) }
}

/** All commands with their summaries. Only the requested command is loaded. */
const commands: Record<string, { usage?: string; summary: string; load: () => Promise<{ default: Make }> }> =
  {
    up: { summary: 'run the gateway and every agent of ./agents', load: () => import('./commands/up.ts') },
    gateway: { summary: 'run the gateway without agents', load: () => import('./commands/gateway.ts') },
    agent: {
      usage: '<folder>',
      summary: 'run one agent as its own server',
      load: () => import('./commands/agent.ts'),
    },
    agents: { summary: 'list the agents of the gateway', load: () => import('./commands/agents.ts') },
    send: {
      usage: '<agent> [text]',
      summary: 'send a message to an agent and show its answer',
      load: () => import('./commands/send.ts'),
    },
    negotiate: {
      usage: '<text>',
      summary: 'rank the agents for a task and show why',
      load: () => import('./commands/negotiate.ts'),
    },
    search: {
      usage: '<text>',
      summary: 'find agents with words, here or at another registry',
      load: () => import('./commands/search.ts'),
    },
    watch: {
      usage: '<task>',
      summary: 'follow a task until it ends',
      load: () => import('./commands/watch.ts'),
    },
    task: {
      usage: '<task>',
      summary: 'show or cancel a task, and the tasks that it created at other agents',
      load: () => import('./commands/task.ts'),
    },
    tasks: {
      summary: 'list the tasks of all agents and follow their changes',
      load: () => import('./commands/operator/tasks.ts'),
    },
    cancel: {
      usage: '<task>',
      summary: 'cancel a task of any owner (operator), or your own',
      load: () => import('./commands/operator/cancel.ts'),
    },
    waiting: {
      summary: 'list what waits for a person: questions, payments, admissions',
      load: () => import('./commands/operator/waiting.ts'),
    },
    deliveries: {
      usage: '[task]',
      summary: 'list webhooks with their attempts, and send events again',
      load: () => import('./commands/operator/deliveries.ts'),
    },
    usage: {
      summary: 'show tasks, tokens and amounts per caller, agent and day',
      load: () => import('./commands/operator/usage.ts'),
    },
    overview: {
      summary: 'show agents, calls and what needs attention (operator)',
      load: () => import('./commands/operator/overview.ts'),
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
      summary: 'check an agent and suggest fixes',
      load: () => import('./commands/check.ts'),
    },
    admit: {
      usage: '<agent>',
      summary: 'admit a registered agent (operator)',
      load: () => operator('admit'),
    },
    quarantine: {
      usage: '<agent>',
      summary: 'quarantine an agent (operator)',
      load: () => operator('quarantine'),
    },
    release: {
      usage: '<agent>',
      summary: 'release an agent from quarantine (operator)',
      load: () => operator('release'),
    },
    remove: {
      usage: '<agent>',
      summary: 'remove an agent from the registry (operator)',
      load: async () => ({ default: (await import('./server/operate.ts')).removeEntryCommand }),
    },
    policy: {
      usage: '<agent> [action] [values...]',
      summary: 'show or change who may call an agent (operator)',
      load: () => import('./commands/policy.ts'),
    },
    clients: {
      usage: '[action] [values...]',
      summary: 'list, limit, tag and revoke OAuth clients and keys (operator)',
      load: () => import('./commands/clients.ts'),
    },
    operators: {
      usage: '[action] [name]',
      summary: 'list, add and remove people who sign in to the console, and their sessions (operator)',
      load: () => import('./commands/operators.ts'),
    },
    decisions: {
      usage: '[decision]',
      summary: 'list and explain the choices of agents',
      load: () => import('./commands/operator/decisions.ts'),
    },
    feedback: {
      usage: '<id>',
      summary: 'rate a task, or report that the wrong agent was chosen',
      load: () => import('./commands/operator/feedback.ts'),
    },
    learned: {
      usage: '<agent>',
      summary: 'show or forget what the gateway has learned about an agent (operator)',
      load: () => import('./commands/operator/learned.ts'),
    },
    history: {
      usage: '<agent>',
      summary: 'show what happened to an agent, and what changed since its admission (operator)',
      load: () => import('./commands/operator/history.ts'),
    },
    audit: {
      summary: 'search the audit log (operator)',
      load: () => import('./commands/operator/audit.ts'),
    },
    wallet: {
      summary: 'create or show the wallet for test money',
      load: () => import('./commands/wallet.ts'),
    },
    payments: {
      usage: '[agent]',
      summary: 'list payments to be refunded (operator)',
      load: () => import('./commands/payments.ts'),
    },
    verify: {
      usage: '[task]',
      summary: 'verify an agent and the signatures of its answers',
      load: () => import('./commands/verify.ts'),
    },
    did: {
      usage: '[action] [agent]',
      summary: 'show, create and rotate identities',
      load: () => import('./commands/did.ts'),
    },
    migrate: {
      summary: 'move an embedded store to MongoDB (operator)',
      load: () => import('./commands/migrate.ts'),
    },
    keys: {
      usage: '[action]',
      summary: 'show and rotate the keys that encrypt stored secrets (operator)',
      load: () => import('./commands/keys.ts'),
    },
    mcp: {
      summary: 'show how MCP hosts connect, or connect one (--stdio)',
      load: () => import('./commands/mcp.ts'),
    },
    token: { summary: 'print an access token', load: () => import('./commands/token.ts') },
    new: {
      usage: '<name>',
      summary: 'create a new agent',
      load: () => import('./commands/new.ts'),
    },
  }

/** Runs the command line. Resolves with the exit code: 0 for success, 1 for failure and 2 for incorrect usage. */
export async function main(argv: string[], io: Io = processIo): Promise<number> {
  if (io.stdout === process.stdout) process.stdout.on('error', endWithoutReader)
  let command: CliCommand | undefined
  try {
    // A supervised agent receives its settings from the supervisor, because .env belongs to the gateway.
    const supervised = argv[0] === 'agent' && process.channel !== undefined
    if (!supervised) loadDotEnv(io)
    const program = programWith(io)
    command = await addCommands(program, argv, io)
    await program.parseAsync(argv, { from: 'user' })
    return command?.exitCode ?? 0
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2
    const nameOf = (path: string) => command?.optionOf(path) ?? path
    if (argv.includes('--json')) io.stderr.write(`${JSON.stringify({ error: faultOf(thrown, nameOf) })}\n`)
    else say(io, `parley: ${sentenceOf(thrown, nameOf)}`)
    return thrown instanceof UsageError ? 2 : 1
  }
}

function programWith(io: Io): Command {
  return new Command('parley')
    .description('Runs AI agents behind one gateway, sends them messages and follows their tasks.')
    .version(version)
    .showHelpAfterError('(see --help)')
    .addHelpText(
      'after',
      `
See parley <command> --help for details. Exit codes: 0 success, 1 failure, 2 incorrect usage. With --json, results on
stdout and errors on stderr are JSON. Settings are read from .env in the working folder; the environment overrides it.`,
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
    })
}

/** Adds the requested command completely and all others only by name. */
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
      // commander splits an argument like `<agent url>` at the space.
      for (const [argument] of usage.matchAll(/<[^>]+>|\[[^\]]+\]/g)) other.argument(argument)
    }
  }
  return found
}

/** Exits quietly when the reader of a pipe closes it, as in `parley agents | head -1`. */
function endWithoutReader(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(0)
  throw error
}
