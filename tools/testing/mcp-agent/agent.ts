import { setTimeout as delay } from 'node:timers/promises'
import { defineAgent, file, type HandlerContext, type Output, progress } from '@parley/agent'
import { z } from 'zod'
import { choicesForm, clip, nameForm, pixel, profileForm, userForm } from './content.ts'

type Scenario = (context: HandlerContext) => AsyncIterable<Output> | Iterable<Output>

interface TestSkill {
  id: string
  description: string
  /** Default: no fields. */
  input?: z.ZodType
  run: Scenario
}

type Question = Parameters<HandlerContext['ask']>[1] & { message: string }

/** Pauses until each question has an answer, then completes with the answers. */
function asking(questions: Record<string, Question>): Scenario {
  return function* ({ ask, input }) {
    const given = z.looseObject({}).parse(input)
    const open = Object.entries(questions).filter(([key]) => given[key] === undefined)
    if (open.length > 0) yield ask(open[0]?.[1].message ?? '', { inputs: Object.fromEntries(open) })
    else yield `Answers: ${JSON.stringify(given)}`
  }
}

const waiting = z.object({ seconds: z.number().min(0).max(600), label: z.string().default('') })

async function* slowly({ input, signal }: HandlerContext): AsyncGenerator<Output> {
  const { seconds, label } = waiting.parse(input)
  await delay(seconds * 1000, undefined, { signal })
  yield `Computed ${label} in ${seconds} s`
}

/** The server stores at most one message about progress per second. */
async function* inSteps({ signal }: HandlerContext): AsyncGenerator<Output> {
  for (const done of [0, 50, 100]) {
    yield progress(`${done} of 100`)
    await delay(1050, undefined, { signal })
  }
  yield 'Done'
}

function* logging({ log }: HandlerContext): Generator<Output> {
  log.info('for the operator only')
  yield 'Logged'
}

async function* declining({ decline, signal }: HandlerContext): AsyncGenerator<Output> {
  await delay(1000, undefined, { signal })
  yield decline('This tool intentionally returns an error for testing')
}

async function* crashing({ signal }: HandlerContext): AsyncGenerator<Output> {
  yield progress('Working')
  await delay(1000, undefined, { signal })
  throw new Error('This tool intentionally fails')
}

const answers = z.looseObject({ step1: z.unknown().optional() })
const person = z.object({ name: z.string() })
const picture = file('pixel.png', 'image/png', pixel)
const question = { user_name: nameForm('What is your name?') }
const parts = [
  'Multiple content types test:',
  picture,
  file('data.json', 'application/json', '{"test":"data","value":123}'),
]

/** The tools that the scenarios call; the ID is the name of the tool. */
const testSkills: readonly TestSkill[] = [
  {
    id: 'test_simple_text',
    description: 'Returns a text',
    run: () => ['This is a simple text response for testing.'],
  },
  { id: 'test_image_content', description: 'Returns an image', run: () => [picture] },
  {
    id: 'test_audio_content',
    description: 'Returns audio',
    run: () => [file('clip.wav', 'audio/wav', clip)],
  },
  {
    id: 'test_embedded_resource',
    description: 'Returns a file',
    run: () => [file('resource.txt', 'text/plain', 'This is an embedded resource content.')],
  },
  { id: 'test_multiple_content_types', description: 'Returns a text, an image and a file', run: () => parts },
  { id: 'test_error_handling', description: 'Declines', run: declining },
  { id: 'test_tool_with_progress', description: 'Reports progress', run: inSteps },
  { id: 'test_tool_with_logging', description: 'Reports progress', run: inSteps },
  { id: 'test_logging_tool', description: 'Logs', run: logging },
  {
    id: 'test_elicitation',
    description: 'Requests a name and an address',
    input: z.looseObject({ message: z.string() }),
    run: asking({ user: userForm }),
  },
  {
    id: 'test_elicitation_sep1034_defaults',
    description: 'Offers defaults',
    run: asking({ profile: profileForm }),
  },
  {
    id: 'test_elicitation_sep1330_enums',
    description: 'Offers choices',
    run: asking({ choices: choicesForm }),
  },
  { id: 'test_streaming_elicitation', description: 'Requests a name', run: asking(question) },
  { id: 'test_input_required_result_elicitation', description: 'Requests a name', run: asking(question) },
  { id: 'test_input_required_result_request_state', description: 'Requests a name', run: asking(question) },
  { id: 'test_input_required_result_tampered_state', description: 'Requests a name', run: asking(question) },
  { id: 'test_input_required_result_capabilities', description: 'Requests a name', run: asking(question) },
  {
    id: 'test_input_required_result_multi_round',
    description: 'Requests a name, then a colour',
    run: (context) => {
      const isFirst = answers.parse(context.input).step1 === undefined
      const round = isFirst
        ? { step1: nameForm('Step 1: your name?') }
        : { step2: nameForm('Step 2: your colour?') }
      return asking(round)(context)
    },
  },
  {
    id: 'greet',
    description: 'Greets',
    input: person,
    run: ({ input }) => [`Hello, ${person.parse(input).name}!`],
  },
  { id: 'slow_compute', description: 'Waits', input: waiting, run: slowly },
  { id: 'failing_job', description: 'Declines', run: declining },
  { id: 'protocol_error_job', description: 'Fails', run: crashing },
  {
    id: 'confirm_delete',
    description: 'Requests a confirmation',
    input: z.looseObject({ filename: z.string() }),
    run: asking({ confirm: nameForm('Delete the file?') }),
  },
  {
    id: 'multi_input',
    description: 'Requests two names',
    run: asking({ first: nameForm('The first name?'), second: nameForm('The second name?') }),
  },
  { id: 'test_tool_with_task', description: 'Requests a name', run: asking(question) },
]

/** The agent with the tools that the conformance suite of MCP demands. */
export default defineAgent({
  name: 'conformance',
  description: 'Behaves as the conformance suite of MCP expects',
  skills: testSkills.map(({ id, description, input = z.looseObject({}) }) => ({
    id,
    name: id,
    description,
    tags: ['test'],
    input,
    outputModes: ['text/plain', 'application/json', 'image/png', 'audio/wav'],
  })),
  handle: (context) => testSkills.find(({ id }) => id === context.skillId)?.run(context) ?? [],
})
