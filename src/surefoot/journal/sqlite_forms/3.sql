-- Form 3 has an inbox, leases, and columns to look for.
-- grows whenever a worker claims it
ALTER TABLE run ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;
-- of a run that was claimed: until then it is the owner's
ALTER TABLE run ADD COLUMN lease_until REAL;
-- when a worker may claim it, none while it is driven or stands still
ALTER TABLE run ADD COLUMN ready_at REAL;
ALTER TABLE summary ADD COLUMN status TEXT NOT NULL DEFAULT '';
ALTER TABLE summary ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE summary ADD COLUMN standing TEXT NOT NULL DEFAULT '';
ALTER TABLE summary ADD COLUMN waits INTEGER NOT NULL DEFAULT 0;
ALTER TABLE summary ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
CREATE TABLE label (label TEXT NOT NULL, run INTEGER NOT NULL, PRIMARY KEY (label, run)) WITHOUT ROWID;
CREATE TABLE word (
    number INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    body BLOB NOT NULL,
    outcome TEXT NOT NULL DEFAULT '',
    detail TEXT NOT NULL DEFAULT '',
    seq INTEGER NOT NULL DEFAULT -1
);
CREATE UNIQUE INDEX word_key ON word (run, key) WHERE key<>'';
CREATE INDEX word_unheard ON word (run) WHERE outcome='';
CREATE INDEX run_ready ON run (ready_at) WHERE ready_at IS NOT NULL;
CREATE INDEX run_driven ON run (owner) WHERE owner<>'';
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX summary_change ON summary (change);
CREATE INDEX summary_status ON summary (status, run);
CREATE INDEX summary_agent ON summary (agent, run) WHERE agent<>'';
CREATE INDEX summary_waits ON summary (run) WHERE waits;
CREATE INDEX summary_open ON summary (standing, run) WHERE status='running';
