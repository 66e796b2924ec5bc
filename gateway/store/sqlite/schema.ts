/**
 * The schema migrations of `gateway.db` in chronological order: OAuth server, registry, routing and signature claims. New
 * migrations are appended, and a released migration never changes.
 */
export const gatewayMigrations: readonly string[] = [
  `CREATE TABLE oauth_entries (
     model TEXT NOT NULL,
     id TEXT NOT NULL,
     payload TEXT NOT NULL,
     client_id TEXT,
     grant_id TEXT,
     uid TEXT,
     user_code TEXT,
     consumed_at INTEGER,
     expires_at INTEGER,
     PRIMARY KEY (model, id)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX oauth_entries_client ON oauth_entries (client_id) WHERE client_id IS NOT NULL;
   CREATE INDEX oauth_entries_grant ON oauth_entries (grant_id) WHERE grant_id IS NOT NULL;
   CREATE INDEX oauth_entries_uid ON oauth_entries (model, uid) WHERE uid IS NOT NULL;
   CREATE INDEX oauth_entries_user_code ON oauth_entries (model, user_code) WHERE user_code IS NOT NULL;
   CREATE INDEX oauth_entries_expiry ON oauth_entries (expires_at) WHERE expires_at IS NOT NULL;`,
  `CREATE TABLE registry_agents (
     id TEXT PRIMARY KEY,
     slug TEXT NOT NULL UNIQUE,
     did TEXT UNIQUE,
     entry TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;`,
  `CREATE TABLE routes (
     owner TEXT NOT NULL,
     kind TEXT NOT NULL,
     id TEXT NOT NULL,
     agent TEXT NOT NULL,
     context TEXT,
     at INTEGER NOT NULL,
     words TEXT,
     PRIMARY KEY (owner, kind, id)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX routes_of_context ON routes (owner, context) WHERE context IS NOT NULL;
   CREATE INDEX routes_waiting ON routes (id, agent) WHERE words IS NOT NULL;
   CREATE INDEX routes_age ON routes (kind, at);
   CREATE TABLE route_agents (
     owner TEXT NOT NULL,
     agent TEXT NOT NULL,
     at INTEGER NOT NULL,
     PRIMARY KEY (owner, agent)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE decisions (id TEXT PRIMARY KEY, owner TEXT, at INTEGER NOT NULL, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
   CREATE INDEX decisions_age ON decisions (at);
   CREATE TABLE lessons (
     context TEXT NOT NULL,
     agent TEXT NOT NULL,
     at INTEGER NOT NULL,
     body TEXT NOT NULL,
     PRIMARY KEY (context, agent)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX lessons_age ON lessons (at);
   CREATE TABLE routing_key (key BLOB NOT NULL) STRICT;
   INSERT INTO routing_key VALUES (randomblob(32));`,
  `ALTER TABLE routes ADD COLUMN claim_until INTEGER;
   ALTER TABLE routes ADD COLUMN claim_verified_until INTEGER;
   CREATE INDEX routes_claims ON routes (claim_until) WHERE claim_until IS NOT NULL;`,
  `ALTER TABLE decisions ADD COLUMN holder TEXT NOT NULL DEFAULT '';
   UPDATE decisions SET holder = owner WHERE owner IS NOT NULL;
   CREATE INDEX decisions_of_callers ON decisions (holder, at) WHERE owner IS NOT NULL;
   CREATE INDEX decisions_anonymous ON decisions (holder, at) WHERE owner IS NULL;`,
  `CREATE TABLE gateway_signatures (
     name TEXT PRIMARY KEY,
     holder TEXT NOT NULL,
     until INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX gateway_signatures_until ON gateway_signatures (until);`,
  `CREATE TABLE gateway_keys (name TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT, WITHOUT ROWID;
   ALTER TABLE oauth_entries ADD COLUMN data_key TEXT;
   CREATE INDEX oauth_entries_data_key ON oauth_entries (data_key);`,
  `ALTER TABLE decisions ADD COLUMN task TEXT;
   ALTER TABLE decisions ADD COLUMN summary TEXT;
   ALTER TABLE decisions ADD COLUMN verdicts TEXT;
   CREATE INDEX decisions_of_task ON decisions (task) WHERE task IS NOT NULL;`,
  `CREATE TABLE gateway_audit (
     id TEXT PRIMARY KEY,
     kind TEXT NOT NULL,
     source TEXT NOT NULL,
     at INTEGER NOT NULL,
     body TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX gateway_audit_age ON gateway_audit (at);
   CREATE INDEX gateway_audit_of_kind ON gateway_audit (kind, at);
   CREATE INDEX gateway_audit_of_source ON gateway_audit (kind, source, at);
   CREATE TABLE gateway_history (
     id TEXT PRIMARY KEY,
     agent TEXT NOT NULL,
     at INTEGER NOT NULL,
     body TEXT NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX gateway_history_age ON gateway_history (at);
   CREATE INDEX gateway_history_of_agent ON gateway_history (agent, at);`,
  `ALTER TABLE decisions ADD COLUMN features TEXT;
   ALTER TABLE decisions ADD COLUMN context TEXT;
   CREATE INDEX decisions_of_context ON decisions (context) WHERE context IS NOT NULL;
   ALTER TABLE lessons ADD COLUMN removed_with TEXT;
   CREATE INDEX lessons_removed_with ON lessons (removed_with) WHERE removed_with IS NOT NULL;
   CREATE INDEX lessons_of_agent ON lessons (agent, at);`,
  `CREATE TABLE sentence_vectors (key TEXT PRIMARY KEY, at INTEGER NOT NULL, vector BLOB NOT NULL) STRICT, WITHOUT ROWID;
   CREATE INDEX sentence_vectors_age ON sentence_vectors (at);`,
]
