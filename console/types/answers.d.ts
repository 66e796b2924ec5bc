/** The answers that the console reads, inferred from the contract in `shared/wire/codecs/answers/operator`. */
import type { gatewayAnswer } from '@parley/wire/codecs/answers/negotiation'
import type {
  accountAnswer,
  agentLoad,
  attention,
  consoleSessionAnswer,
  overviewAnswer,
  sessionAnswer,
} from '@parley/wire/codecs/answers/operator/console'
import type { deliveryDetail, deliveryRow } from '@parley/wire/codecs/answers/operator/deliveries'
import type {
  auditRow,
  decisionDetail,
  decisionList,
  decisionRow,
  historyRow,
  learnedAnswer,
  verdictAnswer,
} from '@parley/wire/codecs/answers/operator/records'
import type {
  queueAnswer,
  taskDetail,
  taskList,
  taskRow,
  waitingAnswer,
} from '@parley/wire/codecs/answers/operator/tasks'
import type { z } from 'zod'

export type Session = z.output<typeof sessionAnswer>
export type Overview = z.output<typeof overviewAnswer>
export type AgentLoad = z.output<typeof agentLoad>
export type Attention = z.output<typeof attention>
export type TaskRow = z.output<typeof taskRow>
export type TaskList = z.output<typeof taskList>
export type TaskDetail = z.output<typeof taskDetail>
export type TaskEvent = TaskDetail['events'][number]
export type ChainedTask = TaskDetail['chain'][number]
export type Queue = z.output<typeof queueAnswer>
export type Waiting = z.output<typeof waitingAnswer>
export type DecisionRow = z.output<typeof decisionRow>
export type DecisionList = z.output<typeof decisionList>
export type DecisionDetail = z.output<typeof decisionDetail>
export type Negotiation = z.output<typeof gatewayAnswer>
export type DeliveryRow = z.output<typeof deliveryRow>
export type DeliveryDetail = z.output<typeof deliveryDetail>
export type AuditRow = z.output<typeof auditRow>
export type Learned = z.output<typeof learnedAnswer>
export type VerdictAnswer = z.output<typeof verdictAnswer>
export type HistoryRow = z.output<typeof historyRow>
export type Account = z.output<typeof accountAnswer>
export type ConsoleSession = z.output<typeof consoleSessionAnswer>

export type Tone = 'good' | 'warn' | 'bad' | 'info' | 'violet' | 'quiet'

/** The content that htm templates accept. */
export type Content = import('preact').ComponentChildren
