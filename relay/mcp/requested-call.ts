import type { HandlerContext } from '@parley/agent/internal/author/context'
import type { Output } from '@parley/agent/internal/author/output'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { cleanLine } from '@parley/wire/model/clean-text'
import type { JsonObject, Message } from '@parley/wire/model/task'
import { argumentsFor, fieldsText, schemaOf } from './arguments.ts'
import { chooseTool } from './tool-choice.ts'
import type { McpTool } from './tools.ts'

/** The call that the messages of a task request. */
export interface RequestedCall {
  tool: McpTool
  arguments: JsonObject
}

/** A pause or a rejection, because the messages do not suffice for a call. */
export interface Question {
  kind: 'pause'
  output: Output
}

/** Returns the tool and its arguments, or the question to the caller. */
export function requestedCall(context: HandlerContext, tools: readonly McpTool[]): RequestedCall | Question {
  const { ask, decline, skillId, text, history, message } = context
  const data = dataIn([...history, message])
  const before = history.filter(({ role, messageId }) => role === 'user' && messageId !== message.messageId)
  const question = (output: Output) => ({ kind: 'pause' as const, output })
  const chosen =
    chooseTool(tools, { skillId, data, text }) ??
    before.flatMap((one) => chooseTool(tools, { skillId, data, text: textIn(one) }) ?? []).at(-1)
  if (chosen === undefined) {
    if (tools.length === 0)
      return question(
        decline(
          'The server offers no tools at the moment. If it requires a credential, the operator sets it with npx parley admit <agent> --credential.',
        ),
      )
    const names = tools.slice(0, 50).map(({ id, description }) => `- ${id}: ${cleanLine(description, 120)}`)
    const more = tools.length > 50 ? `\n… and ${tools.length - 50} more` : ''
    return question(
      ask(
        `Which tool? Begin the message with its name, or name it as the skill.\n${names.join('\n')}${more}`,
      ),
    )
  }
  const { tool } = chosen
  const isAnswer = before.length > 0 && chosen.text === '' && text !== ''
  const read = argumentsFor(tool.inputSchema, { data, text: isAnswer ? text : chosen.text })
  if ('faults' in read)
    return question(
      decline(
        `The message does not fit the tool ${tool.id}: ${read.faults.join('; ')}. Expected:\n${expectedFields(tool)}`,
      ),
    )
  if (!('missing' in read)) return { tool, arguments: read.values }
  const prompt = `The tool ${tool.id} requires:\n${fieldsText(tool.inputSchema, read.missing)}`
  const details = {
    tool: tool.id,
    missing: read.missing,
    schema: schemaOf(tool.inputSchema, read.missing),
  }
  return question(ask(prompt, details))
}

function expectedFields({ inputSchema }: McpTool): string {
  const { properties } = inputSchema
  return fieldsText(inputSchema, isObject(properties) ? Object.keys(properties) : [])
}

function dataIn(messages: readonly Pick<Message, 'role' | 'parts'>[]): JsonObject {
  const parts = messages.filter(({ role }) => role === 'user').flatMap((one) => one.parts)
  return Object.assign({}, ...parts.flatMap((one) => (one.kind === 'data' ? [one.data] : [])))
}

function textIn({ parts }: Pick<Message, 'parts'>): string {
  return parts.flatMap((one) => (one.kind === 'text' ? [one.text] : [])).join('\n')
}
