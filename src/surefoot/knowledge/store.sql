-- Form 1 of the store. The index of words, `entry_text`, is made beside it.
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    subject TEXT NOT NULL,
    predicate TEXT NOT NULL,
    object TEXT NOT NULL,
    content TEXT NOT NULL,
    scope TEXT NOT NULL,       -- '' none, '.' the root, else a directory below it
    language TEXT NOT NULL,    -- '' any
    confidence REAL NOT NULL,
    verified INTEGER NOT NULL,
    verified_by TEXT NOT NULL,
    source TEXT NOT NULL,
    run_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    created_at REAL NOT NULL,
    key BLOB NOT NULL,         -- the same for contents that say the same
    UNIQUE (scope, language, key)
);
CREATE INDEX entry_lookup ON entry (language, scope, verified, confidence DESC, id, key);
