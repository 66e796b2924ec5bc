import { callerFault, readPolicyAnswer, readPolicyCheck } from '@parley/wire/codecs/parley/policy'
import { readEntry } from '@parley/wire/codecs/parley/registry'
import type { AgentPolicy, PolicyEffect, PolicyRule } from '@parley/wire/model/policy'
import { operate, whoMay } from '../server/operate.ts'
import { type ServerOptions, slugOf, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { skillName } from '../terminal/entry-view.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

interface PolicyOptions extends ServerOptions {
  skill?: string[]
  note?: string
  for?: string
  json?: true
}

const help = `
Actions:
  (none)                      show the policy
  allow <caller…>             add a rule that allows these callers
  deny <caller…>              add a rule that denies these callers
  remove <number>             remove a rule
  default allow|deny          decide for clients to which no rule applies
  check <caller>              show what the caller may do, and the rule that decides it; changes nothing
  reset                       remove the policy: every caller may call the agent

Callers: a client id, a DID, did:web:<host>:* (all DIDs below it), tag:<tag> (clients with this tag), authenticated
(all clients), anonymous (requests without a token), "*" (both). A deny rule takes precedence over every allow rule.
The first rule of an agent sets the default: deny after allow, allow after deny. An agent with a policy is visible
without a token only if a rule allows anonymous or "*".

A caller that may not call an agent does not see it in lists, rankings or errors.
Exit codes: 0 done, or the checked caller is allowed; 1 failure, or the caller is not allowed; 2 incorrect usage.`

export default function policyCommand(io: Io): CliCommand {
  const collected = (text: string, before: string[] = []) => [...before, text]
  return withServerOptions(new CliCommand('policy'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .argument('[action]', 'allow, deny, remove, default, check or reset')
    .argument('[values...]', 'callers, the number of a rule, or the default')
    .option('--skill <id>', 'limit the rule or the check to this skill (repeatable in a rule)', collected)
    .option('--note <text>', 'comment of the rule')
    .option('--for <caller>', 'check: the caller on whose behalf the agent <caller> acts')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText('after', help + whoMay)
    .members({
      callers: '<caller>',
      skills: '--skill',
      caller: '<caller>',
      delegate: '<caller>',
    })
    .run((agent: string, action: string | undefined, values: string[], options: PolicyOptions) =>
      run(io, { agent: slugOf(agent), action: action ?? 'show', values, options }),
    )
}

interface Invocation {
  agent: string
  action: string
  values: string[]
  options: PolicyOptions
}

async function run(io: Io, invocation: Invocation): Promise<number | undefined> {
  const { agent, action, values, options } = invocation
  const path = `${agent}/policy`
  if (action === 'check') return check(io, invocation)
  if (action === 'reset') {
    noValues(action, values)
    return show(io, options, (await operate(io, options, { method: 'DELETE', path })).body)
  }
  if (action === 'show') {
    noValues(action, values)
    return show(io, options, (await operate(io, options, { method: 'GET', path })).body)
  }
  const change = changeOf(invocation)
  const { body, headers } = await operate(io, options, { method: 'GET', path })
  const changed = change(policyIn(body))
  // The version that was read: a concurrent change by another operator is not overwritten.
  const version = headers.get('etag')
  const answer = await operate(io, options, {
    method: 'PUT',
    path,
    body: changed,
    headers: version === null ? {} : { 'if-match': version },
  })
  show(io, options, answer.body)
  if (options.skill !== undefined) await sayUnknownSkills(io, agent, options, options.skill)
  return undefined
}

/** A rule may name a skill that the agent does not have yet, but this is more often a misspelled name. */
async function sayUnknownSkills(
  io: Io,
  agent: string,
  options: PolicyOptions,
  skills: string[],
): Promise<void> {
  const entry = await operate(io, options, { method: 'GET', path: agent }).catch(() => undefined)
  const known = entry === undefined ? undefined : readEntry(entry.body).skills?.map(skillName)
  if (known === undefined) return
  for (const skill of skills.filter((one) => !known.includes(one)))
    say(
      io,
      `${agent} has no skill "${oneLine(skill, 80)}", only ${oneLine(known.join(', '), 400)}: is the name correct?`,
    )
}

/** Returns the change that the arguments describe. @throws UsageError */
function changeOf({ action, values, options }: Invocation): (policy: AgentPolicy | undefined) => AgentPolicy {
  const [value = ''] = values
  if (action === 'allow' || action === 'deny') {
    if (values.length === 0)
      throw new UsageError(`Name at least one caller, for example "${action} client-id".`)
    const rule: PolicyRule = {
      effect: action,
      callers: values.map(callerOf),
      ...(options.skill !== undefined && { skills: options.skill }),
      ...(options.note !== undefined && { note: options.note }),
    }
    return (policy) => ({
      rules: [...(policy?.rules ?? []), rule],
      default: policy?.default ?? (action === 'allow' ? 'deny' : 'allow'),
    })
  }
  if (options.skill !== undefined || options.note !== undefined)
    throw new UsageError('--skill and --note belong to a rule: use them with allow or deny.')
  if (action === 'default') {
    if (values.length !== 1 || !isEffect(value)) throw new UsageError('The default is allow or deny.')
    return (policy) => ({ rules: policy?.rules ?? [], default: value })
  }
  if (action !== 'remove')
    throw new UsageError(`"${action}" is not an action: use allow, deny, remove, default, check or reset.`)
  if (values.length !== 1 || !/^[1-9]\d{0,3}$/.test(value))
    throw new UsageError('remove takes the number of a rule, as in the list of rules.')
  return (policy) => {
    if (policy === undefined || policy.rules.length < Number(value))
      throw new CommandFailed(`The policy has no rule ${value}.`)
    return { ...policy, rules: policy.rules.toSpliced(Number(value) - 1, 1) }
  }
}

const isEffect = (text: string): text is PolicyEffect => text === 'allow' || text === 'deny'

function noValues(action: string, values: readonly string[]): void {
  if (values.length > 0) throw new UsageError(`${action} takes no further arguments.`)
}

/** A word without a prefix is a client id. @throws UsageError */
function callerOf(text: string): string {
  const isWhole = /^(\*|anonymous|authenticated)$|^(client|tag|did):/.test(text)
  const caller = isWhole ? text : `client:${text}`
  const fault = callerFault(caller)
  if (fault !== undefined) throw new UsageError(`"${oneLine(text, 80)}" is not a caller: ${fault}.`)
  return caller
}

function policyIn(body: unknown): AgentPolicy | undefined {
  const answer = readPolicyAnswer(body)
  if (answer === undefined)
    throw new CommandFailed('The gateway returned a policy that this version cannot read.')
  return answer.policy
}

function show(io: Io, { json }: PolicyOptions, body: unknown): undefined {
  if (json) return printJson(io, body) as undefined
  const policy = policyIn(body)
  if (policy === undefined) return print(io, 'No policy: every caller may call this agent.\n') as undefined
  const lines = policy.rules.map((rule, at) => `${at + 1}. ${lineOf(rule)}\n`)
  const otherwise =
    policy.default === 'allow'
      ? 'all other clients may call this agent'
      : 'no other caller may call this agent'
  print(io, `${lines.join('')}default ${policy.default}: ${otherwise}\n`)
  return undefined
}

function lineOf({ effect, callers, skills, note }: PolicyRule): string {
  const which = skills === undefined ? '' : ` for ${skills.map((skill) => oneLine(skill, 80)).join(', ')}`
  const comment = note === undefined ? '' : `  # ${oneLine(note, 200)}`
  return `${effect} ${callers.map((caller) => oneLine(caller, 120)).join(', ')}${which}${comment}`
}

async function check(io: Io, { agent, values, options }: Invocation): Promise<number> {
  const [first, ...others] = values
  const [skill, ...moreSkills] = options.skill ?? []
  if (first === undefined || others.length > 0 || moreSkills.length > 0)
    throw new UsageError('check takes one caller and at most one --skill.')
  const query = new URLSearchParams({
    caller: callerOf(options.for ?? first),
    ...(options.for !== undefined && { delegate: callerOf(first) }),
    ...(skill !== undefined && { skill }),
  })
  const path = `${agent}/policy/check?${query.toString()}`
  const { body } = await operate(io, options, { method: 'GET', path })
  const checked = readPolicyCheck(body)
  if (options.json) printJson(io, body)
  else {
    const what = skill === undefined ? `call ${agent}` : `use ${oneLine(skill, 80)} of ${agent}`
    const skills =
      checked.allowed && checked.skills !== undefined ? `, with ${checked.skills.join(', ')} only` : ''
    const verb = checked.allowed ? 'may' : 'may not'
    const who = options.for === undefined ? first : `${first} on behalf of ${options.for}`
    print(io, `${oneLine(who, 250)} ${verb} ${what}${skills}: ${oneLine(checked.rule, 200)}\n`)
  }
  return checked.allowed ? 0 : 1
}
