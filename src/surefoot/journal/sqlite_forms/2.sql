-- Form 2 has summaries. That of a run of form 1 is made when it is written to.
CREATE TABLE summary (
    run INTEGER PRIMARY KEY,
    body BLOB NOT NULL  -- as `types/ports.py` has it, in JSON
);
