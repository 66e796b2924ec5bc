import { hashOf, keyText } from '@parley/kit/database/keys'
import type { JsonObject } from '@parley/wire/model/task'
import type { Timestamp } from '@parley/wire/model/timestamp'

/** Identifies one task permanently: the id of a removed task may be used again, also by another owner. */
export interface TaskKey {
  id: string
  owner: string
  createdAt: Timestamp
}

/** The key as one text. */
export const taskKey = (task: TaskKey) => hashOf(keyText(task.id), keyText(task.owner), task.createdAt)

/** PushNotificationConfig, bound to its task, with the progress of its deliveries (spec/webhooks.md#pushnotificationconfig). */
export interface PushConfig {
  task: TaskKey
  /** Of the config; a task has each at most once. */
  id: string
  /** New with each `set`: what was begun for an earlier one no longer counts. */
  revision: string
  setAt: Timestamp
  url: string
  token?: string
  authentication?: JsonObject
  longRunning: boolean
  /** Number of the last event that was delivered or dropped; at first that of the last event before the registration. */
  settled: number
  /** It may still owe an event: its task has not ended, or not every event is settled. */
  open: boolean
  health: DeliveryHealth
}

/** What its owner is told of the deliveries of a config. */
export interface DeliveryHealth {
  attempts: number
  delivered: number
  /** Events that were given up, by reason. */
  dropped: Record<string, number>
  /** HTTP status of the last attempt that was answered. */
  lastStatus?: number
  lastError?: string
  lastAttemptAt?: Timestamp
}

/** How an event of a config ended. */
export interface Settlement {
  settled: number
  open: boolean
  health: DeliveryHealth
}

export type ConfigKey = Pick<PushConfig, 'task' | 'id'>

/** Whose a config is to send; `absent`: it is not there. */
export type Claim = 'ours' | 'anothers' | 'absent'

/** Configs that may still owe something, without what is secret or large. */
export interface OpenPushConfig {
  task: TaskKey
  id: string
  url: string
  settled: number
}

/**
 * The push configs of an agent's tasks. What a config owes is told by its `settled` and the events of its task's record:
 * the obligation is made by the commit of the task alone. Promises as of `Store`; a task's configs go with the task.
 */
export interface WebhookStore {
  /**
   * Replaces the config of the same task and id; the newest comes first in lists. False, and nothing is changed, when the
   * task has `perTaskMax` others.
   * @throws ParleyError Unavailable when there is no room
   */
  savePushConfig(config: PushConfig, perTaskMax: number): Promise<boolean>
  findPushConfig(task: TaskKey, id: string): Promise<PushConfig | undefined>
  /** Newest first. */
  listPushConfigs(task: TaskKey): Promise<PushConfig[]>
  /** Returns the one that was removed. With `revision`: that one only. */
  removePushConfig(task: TaskKey, id: string, revision?: string): Promise<PushConfig | undefined>
  /**
   * False when the config was replaced or removed, is as far already, or is not claimed by the sender that is named: nothing
   * is changed then.
   */
  settlePushConfig(
    config: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    settlement: Settlement,
    sender?: string,
  ): Promise<boolean>
  /**
   * One process sends what a config owes: the config is this sender's for `forMs` from now, taken or prolonged. Who comes
   * while it is another's is not told later; the other is, when it lets go. Where no other process sends, all is `ours`.
   */
  claimPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<Claim>
  /** Prolongs it where nobody else had it since. False: what was known of the config may have changed. */
  renewPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<boolean>
  /** Lets go. False: others came meanwhile for what may be new, so the claim stays; look again, then let go. */
  releasePushConfig(key: ConfigKey, sender: string): Promise<boolean>
  /** Those with `open`, in the order of their registration, behind the cursor; with `unclaimed` those that nobody sends. */
  listOpenPushConfigs(query: { limit: number; cursor?: number; unclaimed?: boolean }): Promise<{
    items: OpenPushConfig[]
    /** Absent at the end. */
    nextCursor?: number
  }>
}
