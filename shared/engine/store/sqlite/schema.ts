/**
 * The schema of an agent's embedded store. A task is one row, and newer tasks have a higher `seq`. Values that are
 * queried or change often are columns before `body`, so that SQLite can read them without the body. Every index ends
 * in `seq`, which SQLite appends. No query of the port may scan `tasks`; a test checks this. The cost of a commit
 * depends on the number of changed pages, and an index over owners or contexts changes one page for each of them.
 * Such an index is therefore split into one for unfinished tasks, which occupies only a few pages, and one that a
 * task enters once, when it ends. Migration n upgrades version n to n + 1. A released migration never changes: add a
 * new one instead.
 */
export const agentMigrations: readonly string[] = [
  `
  CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    context_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    version INTEGER NOT NULL,
    lease_holder TEXT,
    lease_until INTEGER,
    due_at INTEGER,
    -- 1 when the body refers to rows of parts.
    large INTEGER NOT NULL,
    body TEXT NOT NULL,
    open_state TEXT AS (
      CASE WHEN state IN ('completed', 'failed', 'canceled', 'rejected') THEN NULL ELSE state END
    ) VIRTUAL,
    ended_state TEXT AS (
      CASE WHEN state IN ('completed', 'failed', 'canceled', 'rejected') THEN state END
    ) VIRTUAL
  ) STRICT;
  CREATE INDEX tasks_open_of_owner ON tasks (open_state, owner) WHERE open_state IS NOT NULL;
  CREATE INDEX tasks_open_of_context ON tasks (open_state, context_id) WHERE open_state IS NOT NULL;
  CREATE INDEX tasks_ended_of_owner ON tasks (owner, ended_state) WHERE ended_state IS NOT NULL;
  CREATE INDEX tasks_ended_of_context ON tasks (context_id, ended_state) WHERE ended_state IS NOT NULL;
  CREATE INDEX tasks_ended ON tasks (updated_at) WHERE ended_state IS NOT NULL;
  CREATE INDEX tasks_due ON tasks (due_at) WHERE due_at IS NOT NULL;

  -- Large parts, each written once. hash: SHA-256 of body, which is the part as JSON.
  CREATE TABLE parts (
    task_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (task_id, hash)
  ) STRICT;

  -- How many tasks ever ended in each state, whether they are still here or not.
  CREATE TABLE ended_counts (state TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO ended_counts VALUES ('completed', 0), ('failed', 0), ('canceled', 0), ('rejected', 0);

  -- Made with its first task, removed with its last.
  CREATE TABLE contexts (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    task_count INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX contexts_of_owner ON contexts (owner, updated_at, id);

  CREATE TABLE idempotency_keys (
    owner TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    task_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_of_task ON idempotency_keys (task_id);
  CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

  CREATE TABLE feedback (
    task_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (task_id, owner)
  ) STRICT, WITHOUT ROWID;

  -- Seals cursors; made here so that a cursor outlives a restart.
  CREATE TABLE cursor_key (key BLOB NOT NULL) STRICT;
  INSERT INTO cursor_key VALUES (randomblob(32));
  `,
  `
  -- Signed requests that were taken once (spec/authentication.md#replay); hash: SHA-256 of DID and signature.
  CREATE TABLE seen_signatures (hash BLOB PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  CREATE INDEX seen_signatures_until ON seen_signatures (until);
  `,
  `
  -- Where the events of a task go. What is owed stands in settled and in the events of the task; open: 1 while something is
  -- owed or may be, else NULL.
  CREATE TABLE push_configs (
    seq INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    owner TEXT NOT NULL,
    task_created_at TEXT NOT NULL,
    id TEXT NOT NULL,
    revision TEXT NOT NULL,
    open INTEGER,
    settled INTEGER NOT NULL,
    body TEXT NOT NULL,
    health TEXT NOT NULL,
    UNIQUE (task_id, owner, task_created_at, id)
  ) STRICT;
  CREATE INDEX push_configs_open ON push_configs (open) WHERE open IS NOT NULL;
  `,
  `
  -- The ledger: one row per payment. What is asked for is a column, the rest stands in body. due_at: when it is looked at again.
  CREATE TABLE payments (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    updated_at TEXT NOT NULL,
    nonce_key TEXT UNIQUE,
    purpose TEXT UNIQUE,
    task_id TEXT,
    capture_token TEXT UNIQUE,
    due_at INTEGER,
    body TEXT NOT NULL
  ) STRICT;
  CREATE INDEX payments_of_state ON payments (state);
  CREATE INDEX payments_of_task ON payments (task_id) WHERE task_id IS NOT NULL;
  CREATE INDEX payments_due ON payments (due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX payments_open_of_owner ON payments (owner) WHERE state = 'open';
  CREATE INDEX payments_unpaid ON payments (updated_at) WHERE state IN ('failed', 'expired');

  -- Test money (PAYMENT_SANDBOX): what is left in each purse, and what was moved. Amounts are decimal texts: they may be
  -- larger than an integer of SQLite.
  CREATE TABLE test_purses (purse TEXT PRIMARY KEY, left_over TEXT NOT NULL) STRICT, WITHOUT ROWID;
  CREATE TABLE test_transfers (
    nonce_key TEXT PRIMARY KEY,
    purse TEXT NOT NULL,
    atomic TEXT NOT NULL,
    tx_hash TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- The time of the status. The rows of earlier versions have it in body only.
  ALTER TABLE tasks ADD COLUMN status_time TEXT;
  ALTER TABLE tasks ADD COLUMN status_at TEXT AS (
    coalesce(status_time, json_extract(body, '$.status.timestamp'))
  ) VIRTUAL;
  -- Few tasks are open, so that their order by creation needs no index.
  DROP INDEX tasks_open_of_owner;
  DROP INDEX tasks_open_of_context;
  CREATE INDEX tasks_open_of_owner ON tasks (open_state, owner, status_at) WHERE open_state IS NOT NULL;
  CREATE INDEX tasks_open_of_context ON tasks (open_state, context_id, status_at) WHERE open_state IS NOT NULL;
  CREATE INDEX tasks_ended_by_status_of_owner ON tasks (owner, ended_state, status_at)
    WHERE ended_state IS NOT NULL;
  CREATE INDEX tasks_ended_by_status_of_context ON tasks (context_id, ended_state, status_at)
    WHERE ended_state IS NOT NULL;

  -- The client's own name for the context.
  ALTER TABLE contexts ADD COLUMN name TEXT;
  `,
  `
  -- Lists of all owners by status. Retention uses it too, so that a task that ends still enters the same number of indexes.
  DROP INDEX tasks_ended;
  CREATE INDEX tasks_ended_by_status ON tasks (ended_state, status_at) WHERE ended_state IS NOT NULL;
  `,
  `
  -- The events of a push config to be sent again.
  ALTER TABLE push_configs ADD COLUMN resend TEXT;
  `,
  `
  -- Usage of tasks per day and owner, written every few seconds. body: the counts as JSON.
  CREATE TABLE usage_days (
    day TEXT NOT NULL,
    owner TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (day, owner)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- Amounts with which payment sessions can be paid by a plain transfer, and the lease for reading these transfers.
  CREATE TABLE transfer_offers (
    amount_key TEXT PRIMARY KEY,
    network TEXT,
    owner TEXT,
    session_id TEXT,
    from_block INTEGER,
    holder TEXT,
    until INTEGER NOT NULL,
    body TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX transfer_offers_of_session ON transfer_offers (session_id) WHERE session_id IS NOT NULL;
  CREATE INDEX transfer_offers_of_owner ON transfer_offers (network, owner) WHERE network IS NOT NULL;
  CREATE INDEX transfer_offers_by_block ON transfer_offers (from_block) WHERE from_block IS NOT NULL;
  `,
  `
  -- Changed tasks that have not entered the tables yet: for each transaction, the columns and the body of its tasks as one
  -- JSON array. Replaced by the next migration.
  CREATE TABLE task_log (position INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
  `,
  `
  -- The newest state of each task that a killed process left in \`task_log\`.
  CREATE TEMP TABLE logged AS
    SELECT * FROM (
      SELECT columns.value ->> 0 AS seq, columns.value ->> 1 AS id, columns.value ->> 2 AS owner,
        columns.value ->> 3 AS context_id, columns.value ->> 4 AS context_name, columns.value ->> 5 AS state,
        columns.value ->> 6 AS status_time, columns.value ->> 7 AS created_at, columns.value ->> 8 AS updated_at,
        columns.value ->> 9 AS version, columns.value ->> 10 AS lease_holder, columns.value ->> 11 AS lease_until,
        columns.value ->> 12 AS due_at, columns.value ->> 13 AS large,
        task_log.body -> format('$[%d]', columns.key + 1) AS body,
        row_number() OVER (PARTITION BY columns.value ->> 0 ORDER BY position DESC) AS age
      FROM task_log, json_each(task_log.body) AS columns WHERE columns.key % 2 = 0
    ) WHERE age = 1;
  UPDATE ended_counts SET count = count + (
    SELECT count(*) FROM logged LEFT JOIN tasks USING (seq)
    WHERE logged.state = ended_counts.state AND tasks.ended_state IS NULL
  );
  INSERT INTO contexts (id, owner, created_at, updated_at, name, task_count)
    SELECT context_id, owner, created_at, created_at, context_name, 1 FROM logged
    WHERE seq NOT IN (SELECT seq FROM tasks) ORDER BY seq
    ON CONFLICT (id) DO UPDATE SET task_count = task_count + 1, updated_at = max(updated_at, excluded.updated_at);
  INSERT OR REPLACE INTO tasks
    (seq, id, owner, context_id, state, status_time, created_at, updated_at, version, lease_holder, lease_until, due_at,
    large, body)
    SELECT seq, id, owner, context_id, state, status_time, created_at, updated_at, version, lease_holder, lease_until,
    due_at, large, body FROM logged;
  DROP TABLE logged;
  DROP TABLE task_log;

  -- The log of changed tasks (\`TaskLog\`): its identity, and the position up to which the tables are complete.
  CREATE TABLE task_log_position (log BLOB NOT NULL, position INTEGER NOT NULL) STRICT;
  INSERT INTO task_log_position VALUES (randomblob(16), 0);
  `,
]
