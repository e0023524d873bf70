-- Version 13: chains, their events, findings and owners; jobs with typed columns.

ALTER TABLE specialist_jobs ADD COLUMN chain_step TEXT;
ALTER TABLE specialist_jobs ADD COLUMN round INTEGER NOT NULL DEFAULT 1;
-- 0 marks a row of the existing system; sp's own incarnations count from 1.
ALTER TABLE specialist_jobs ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN outcome TEXT;
ALTER TABLE specialist_jobs ADD COLUMN model TEXT;
ALTER TABLE specialist_jobs ADD COLUMN error TEXT;
ALTER TABLE specialist_jobs ADD COLUMN branch TEXT;
ALTER TABLE specialist_jobs ADD COLUMN pid INTEGER;
ALTER TABLE specialist_jobs ADD COLUMN start_ticks INTEGER;
ALTER TABLE specialist_jobs ADD COLUMN started_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN completed_at_ms INTEGER;
ALTER TABLE specialist_jobs ADD COLUMN current_tool TEXT;
ALTER TABLE specialist_jobs ADD COLUMN context_pct REAL;
ALTER TABLE specialist_jobs ADD COLUMN turns INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN cache_read_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN cache_write_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE specialist_jobs ADD COLUMN cost_usd REAL NOT NULL DEFAULT 0;

-- What the existing system kept in JSON only.
UPDATE specialist_jobs SET
  started_at_ms = coalesce(CAST(json_extract(status_json, '$.started_at_ms') AS INTEGER), updated_at_ms),
  model         = json_extract(status_json, '$.model'),
  branch        = json_extract(status_json, '$.branch'),
  error         = json_extract(status_json, '$.error'),
  pid           = CAST(json_extract(status_json, '$.pid') AS INTEGER),
  context_pct   = CAST(json_extract(status_json, '$.context_pct') AS REAL)
  WHERE json_valid(status_json);
UPDATE specialist_jobs SET started_at_ms = updated_at_ms WHERE started_at_ms = 0;
-- A word that no reader knows would hide every other job from a listing.
UPDATE specialist_jobs SET outcome = 'status was ' || status, status = 'error'
  WHERE status NOT IN ('starting', 'running', 'waiting', 'done', 'error', 'cancelled');
UPDATE specialist_jobs SET completed_at_ms = updated_at_ms WHERE status IN ('done', 'error', 'cancelled');

-- One live job for a bead and a role. Old rows are left out: the existing system let waiting ones double.
DROP INDEX IF EXISTS idx_jobs_active_bead_specialist;
CREATE UNIQUE INDEX idx_jobs_live_bead_specialist ON specialist_jobs (bead_id, specialist)
  WHERE bead_id IS NOT NULL AND epoch > 0 AND status IN ('starting', 'running', 'waiting');
CREATE INDEX IF NOT EXISTS idx_jobs_bead ON specialist_jobs (bead_id) WHERE bead_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_jobs_chain ON specialist_jobs (chain_id) WHERE chain_id IS NOT NULL;
CREATE INDEX idx_jobs_root_bead ON specialist_jobs (chain_root_bead_id) WHERE chain_root_bead_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS idx_jobs_status_updated ON specialist_jobs (status, updated_at_ms DESC);
CREATE INDEX idx_jobs_started ON specialist_jobs (started_at_ms DESC, job_id);

-- The existing system let two rows of a job share a seq: number such jobs again, in the order they were stored.
UPDATE specialist_events SET seq = counted.place
  FROM (SELECT id, row_number() OVER (PARTITION BY job_id ORDER BY seq, id) AS place FROM specialist_events
        WHERE job_id IN (SELECT job_id FROM specialist_events GROUP BY job_id, seq HAVING count(*) > 1)) AS counted
  WHERE counted.id = specialist_events.id;
DROP INDEX IF EXISTS idx_specialist_events_job_seq;
CREATE UNIQUE INDEX idx_specialist_events_job_seq ON specialist_events (job_id, seq);

CREATE TABLE chains (
  chain_id      TEXT PRIMARY KEY,
  bead_id       TEXT NOT NULL,
  formula       TEXT NOT NULL,
  status        TEXT NOT NULL,
  shape_json    TEXT NOT NULL,
  request_json  TEXT NOT NULL,
  base_ref      TEXT,
  base_sha      TEXT,
  branch        TEXT,
  worktree_path TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  report_json   TEXT
) STRICT;
-- The only guard against two chains on one bead: bd accepts a second molecule.
CREATE UNIQUE INDEX idx_chains_live_bead ON chains (bead_id)
  WHERE status IN ('composing', 'running', 'waiting', 'blocked', 'ready_to_merge', 'stopped');
CREATE INDEX idx_chains_bead ON chains (bead_id, created_at_ms DESC);
CREATE INDEX idx_chains_created ON chains (created_at_ms DESC, chain_id);

CREATE TABLE chain_events (
  chain_id TEXT NOT NULL REFERENCES chains (chain_id),
  seq      INTEGER NOT NULL CHECK (seq >= 1),
  at_ms    INTEGER NOT NULL,
  body     TEXT NOT NULL,
  PRIMARY KEY (chain_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE findings (
  id       INTEGER PRIMARY KEY,
  chain_id TEXT,
  job_id   TEXT,
  step     TEXT,
  code     TEXT NOT NULL,
  severity TEXT NOT NULL,
  message  TEXT NOT NULL,
  mode     TEXT NOT NULL,
  at_ms    INTEGER NOT NULL
) STRICT;
-- NULLs differ from each other in a unique index, hence coalesce.
CREATE UNIQUE INDEX idx_findings_natural ON findings
  (coalesce(chain_id, ''), coalesce(job_id, ''), coalesce(step, ''), code, message);
CREATE INDEX idx_findings_chain ON findings (chain_id, id);
CREATE INDEX idx_findings_job ON findings (job_id, id);

-- A released resource keeps its row, so that its epoch never goes back.
CREATE TABLE owners (
  resource    TEXT PRIMARY KEY,
  epoch       INTEGER NOT NULL CHECK (epoch >= 1),
  boot_id     TEXT,
  pid         INTEGER,
  start_ticks INTEGER,
  taken_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
