-- The three tables of the existing system that sp goes on using, as its schema version 12 has them.
-- Run for a new file only, so that a new and an upgraded database have one shape.
CREATE TABLE IF NOT EXISTS schema_version (
  version       INTEGER PRIMARY KEY,
  applied_at_ms INTEGER NOT NULL
);

CREATE TABLE specialist_jobs (
  job_id               TEXT PRIMARY KEY,
  specialist           TEXT NOT NULL,
  worktree_column      TEXT,
  bead_id              TEXT,
  node_id              TEXT,
  status               TEXT NOT NULL,
  status_json          TEXT NOT NULL,
  updated_at_ms        INTEGER NOT NULL,
  last_output          TEXT,
  startup_payload_json TEXT,
  chain_id             TEXT,
  epic_id              TEXT,
  chain_kind           TEXT NOT NULL DEFAULT 'prep',
  chain_root_job_id    TEXT,
  chain_root_bead_id   TEXT
);

CREATE TABLE specialist_events (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  job_id     TEXT NOT NULL,
  seq        INTEGER NOT NULL,
  specialist TEXT NOT NULL,
  bead_id    TEXT,
  t          INTEGER NOT NULL,
  type       TEXT NOT NULL,
  event_json TEXT NOT NULL
);

CREATE TABLE specialist_results (
  job_id        TEXT PRIMARY KEY,
  output        TEXT NOT NULL,
  updated_at_ms INTEGER NOT NULL
);
