import type { Log } from '@parley/kit/process/log'
import { isTerminal, type Part } from '@parley/wire/model/task'
import type { PaidTasks } from '../payments/ledger/paid-tasks.ts'
import { awaitedPayment, failedPayment, type PaymentRequired } from '../payments/x402/payment-refused.ts'
import { receiptOf } from '../payments/x402/x402.ts'
import type { Scheduler } from '../queue/scheduler.ts'
import type { PaymentRecord } from '../store/payment-store.ts'
import type { TaskRecord } from '../store/store.ts'
import { agentMessage, failed } from './agent-message.ts'
import type { TaskEngine } from './engine.ts'
import { pauseMaxMs, unpaidMaxMs } from './expiry.ts'
import type { Change } from './transitions.ts'

interface Parts {
  engine: TaskEngine
  scheduler: Scheduler
  log: Log
  /** See `failedPrompt`. */
  prompt: (record: TaskRecord, refusal: string) => { part: Part; required: PaymentRequired }
}

/** Connects payments to the tasks that they pay for. */
export function paidTasks({ engine, scheduler, log, prompt }: Parts): PaidTasks {
  /** Returns the task that is waiting for the payment. */
  const findWaiting = async ({ id, taskId }: PaymentRecord) => {
    const task = taskId === undefined ? undefined : await engine.store.loadTask(taskId)
    return task?.heldBy === id ? task : undefined
  }
  /**
   * Applies the change if the task is still waiting for the payment. Otherwise returns undefined, because the
   * task was canceled or another process has notified it.
   */
  const change = async (payment: PaymentRecord, makeChange: (task: TaskRecord) => Change) => {
    const task = await findWaiting(payment)
    if (task === undefined) return undefined
    const draft = engine.draft(task)
    draft.apply(makeChange(task))
    return (await draft.commit()) ? draft.record : undefined
  }
  return {
    async onSettled(payment) {
      const task = await change(payment, () => ({ kind: 'paid', receipt: receiptOf(payment) }))
      if (task !== undefined) scheduler.enqueue({ taskId: task.id, version: task.version, owner: task.owner })
    },
    async onFailed(payment) {
      const reason = `The payment failed: ${payment.reason ?? 'it was not settled'}.`
      const task = await change(payment, (current) => {
        const refusal = payment.reason ?? 'settlement_failed'
        const { asked, unpaid } = current
        if (asked === undefined && unpaid !== true)
          return { ...failed(current, reason), payment: failedPayment(refusal, [payment.terms]) }
        const { part, required } = prompt(current, refusal)
        const message = agentMessage(current, [{ kind: 'text', text: reason }, part])
        const dueAt = Date.now() + (unpaid === true ? unpaidMaxMs : pauseMaxMs)
        const paused = { asked, unpaid, payment: awaitedPayment(required) }
        return { kind: 'pause', state: 'payment-required', message, dueAt, workedMs: 0, ...paused }
      })
      if (task !== undefined)
        log.info({ task_id: task.id, payment_id: payment.id }, 'the payment of a waiting task failed')
    },
    async outcomeOf({ id, taskId }) {
      const task = taskId === undefined ? undefined : await engine.store.loadTask(taskId)
      if (task?.payments?.includes(id) !== true) return 'none'
      const { state } = task.status
      return isTerminal(state) ? state : 'in progress'
    },
  }
}
