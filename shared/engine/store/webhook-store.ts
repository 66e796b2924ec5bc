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
  /** Id of the config, unique for its task. */
  id: string
  /** Changed by each `set`, which invalidates deliveries that began before. */
  revision: string
  setAt: Timestamp
  url: string
  token?: string
  authentication?: JsonObject
  longRunning: boolean
  /** Number of the last event that was delivered or dropped; initially of the last event before the registration. */
  settled: number
  /** There may be undelivered events: the task has not ended, or not every event is settled. */
  open: boolean
  health: DeliveryHealth
}

/** State of the deliveries, as shown to the owner. */
export interface DeliveryHealth {
  attempts: number
  delivered: number
  /** Number of dropped events, by reason. */
  dropped: Record<string, number>
  /** HTTP status of the last response. */
  lastStatus?: number
  lastError?: string
  lastAttemptAt?: Timestamp
}

/** Result of the delivery of an event. */
export interface Settlement {
  settled: number
  open: boolean
  health: DeliveryHealth
}

export type ConfigKey = Pick<PushConfig, 'task' | 'id'>

/** The process that delivers a config; `absent`: the config does not exist. */
export type Claim = 'ours' | 'anothers' | 'absent'

/** A config with undelivered events, without secrets and large fields. */
export interface OpenPushConfig {
  task: TaskKey
  id: string
  url: string
  settled: number
}

/**
 * The push configs of an agent's tasks. Undelivered events follow from `settled` and the events in the task record: the
 * commit of the task alone creates the obligation. Guarantees as of `Store`. Configs are removed with their task.
 */
export interface WebhookStore {
  /**
   * Saves the config or replaces the one of the same task and id; it comes first in lists. False, without a change, when the
   * task has `perTaskMax` others.
   * @throws ParleyError Unavailable when there is no capacity
   */
  savePushConfig(config: PushConfig, perTaskMax: number): Promise<boolean>
  findPushConfig(task: TaskKey, id: string): Promise<PushConfig | undefined>
  /** Newest first. */
  listPushConfigs(task: TaskKey): Promise<PushConfig[]>
  /** Returns the removed config. With `revision`: removes only this revision. */
  removePushConfig(task: TaskKey, id: string, revision?: string): Promise<PushConfig | undefined>
  /**
   * False, without a change, when the config was replaced or removed, has reached this point already, or is not claimed by
   * the given sender.
   */
  settlePushConfig(
    config: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    settlement: Settlement,
    sender?: string,
  ): Promise<boolean>
  /**
   * Claims the deliveries of a config for `forMs`, or extends the claim. While another sender has it, that sender is
   * notified when it releases the config. `ours` if no other process delivers.
   */
  claimPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<Claim>
  /** Extends the claim if no other sender had it since. False: cached data of the config may be outdated. */
  renewPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<boolean>
  /**
   * Releases the claim. False: another process wanted the config, so the claim stays; check for new events, then release
   * again.
   */
  releasePushConfig(key: ConfigKey, sender: string): Promise<boolean>
  /** Open configs after the cursor, in the order of registration; with `unclaimed`, those without a sender. */
  listOpenPushConfigs(query: { limit: number; cursor?: number; unclaimed?: boolean }): Promise<{
    items: OpenPushConfig[]
    /** Absent at the end. */
    nextCursor?: number
  }>
}
