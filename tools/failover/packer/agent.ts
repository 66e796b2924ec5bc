import { defineAgent } from '@parley/agent'
import { doneBefore, note } from '../notes.ts'

/** Descriptions of the three agents. The first one best fits an order to pack, label and ship. */
const described = [
  'Packs an order, labels the parcel and ships it',
  'Packs an order and labels the parcel',
  'Packs an order',
]
const number = Number(process.env['FAILOVER_NUMBER'])
const folder = process.env['FAILOVER_NOTES'] ?? ''

/**
 * The three agents have the same kind of skill and record their work in a file per message. After a kill the restarted
 * task reads that file and does not repeat its work, as agent authors should implement it.
 */
export default defineAgent({
  name: `packer-${number}`,
  description: 'Works on orders',
  skills: [
    {
      id: 'pack',
      name: 'Pack',
      description: described[number - 1] ?? '',
      tags: ['order', 'pack'],
      allowedTools: [`table-${number}`],
    },
  ],
  async handle({ message, task, signal }) {
    const of = { folder, messageId: message.messageId, taskId: task.id }
    note('begun', of)
    if (doneBefore(of)) return 'packed before'
    await pause(50 + Math.random() * 200, signal)
    if (signal.aborted) return 'not packed'
    note('done', of)
    return `packed at table ${number}`
  },
})

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
