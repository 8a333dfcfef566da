-- Form 1, of surefoot 0.1. None of these files is ever changed.
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    started_at REAL NOT NULL,
    parent INTEGER,                 -- number of the run whose records before `at` this one shares
    at INTEGER NOT NULL DEFAULT 0,  -- the first record of its own
    owner TEXT NOT NULL DEFAULT '', -- who drives it
    events INTEGER NOT NULL DEFAULT 0  -- how many records there were when it was last released, shared ones too
);
CREATE TABLE event (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    version INTEGER NOT NULL,
    body BLOB NOT NULL,
    hash BLOB NOT NULL,
    PRIMARY KEY (run, seq)  -- a second writer fails here
);
CREATE TABLE blob (
    digest TEXT PRIMARY KEY,
    data BLOB NOT NULL,
    run INTEGER NOT NULL,  -- the record that it was first kept for
    seq INTEGER NOT NULL
);
