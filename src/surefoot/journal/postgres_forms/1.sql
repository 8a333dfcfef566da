-- Form 1 of the tables. Locks nothing that was there before.
CREATE SCHEMA surefoot;

CREATE TABLE surefoot.meta (
    form integer PRIMARY KEY,
    made_by text NOT NULL,
    at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE surefoot.owner (       -- the stores that drive runs
    token text PRIMARY KEY,
    until double precision NOT NULL -- by the clock of this server; then others may take its runs
);

CREATE TABLE surefoot.run (         -- no column of an index changes in an append
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id text COLLATE "C" NOT NULL UNIQUE,
    started_at double precision NOT NULL,
    parent bigint,                  -- number of the run whose records before `at` this one shares
    at integer NOT NULL DEFAULT 0,  -- the first record of its own
    events integer NOT NULL,        -- how many records there are, shared ones too
    head bytea NOT NULL,            -- the hash of the last one
    agent text NOT NULL DEFAULT '', -- the agent whose workers may claim it
    owner text NOT NULL DEFAULT '', -- who drives it
    fence bigint NOT NULL DEFAULT 0,
    ready_at double precision       -- when a worker may claim it, none while it is driven or stands still
) WITH (fillfactor = 70);
CREATE INDEX run_ready ON surefoot.run (ready_at, number) WHERE ready_at IS NOT NULL;
CREATE INDEX run_owner ON surefoot.run (owner) WHERE owner <> '';
CREATE INDEX run_parent ON surefoot.run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_started ON surefoot.run (started_at);

CREATE TABLE surefoot.event (
    run bigint NOT NULL,
    seq integer NOT NULL,
    at double precision NOT NULL,
    version integer NOT NULL,
    body bytea NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (run, seq)
);

CREATE TABLE surefoot.blob (
    digest text PRIMARY KEY,
    data bytea NOT NULL,
    first_at timestamptz NOT NULL DEFAULT now()  -- or sent again; what is new stays: its record may still come
);

CREATE TABLE surefoot.summary (
    run bigint PRIMARY KEY,
    body bytea NOT NULL,            -- as `types/ports.py` has it, in JSON
    status text NOT NULL,
    standing text NOT NULL,
    agent text NOT NULL,
    waits boolean NOT NULL,
    text text NOT NULL,             -- what is searched, in lower case
    change bigint NOT NULL
) WITH (fillfactor = 70);
CREATE INDEX summary_change ON surefoot.summary (change);
CREATE INDEX summary_status ON surefoot.summary (status, run);
CREATE INDEX summary_agent ON surefoot.summary (agent, run) WHERE agent <> '';
CREATE INDEX summary_waits ON surefoot.summary (run) WHERE waits;
CREATE SEQUENCE surefoot.change;

CREATE TABLE surefoot.label (
    label text COLLATE "C" NOT NULL, -- "name=value", its beginning
    run bigint NOT NULL,
    PRIMARY KEY (label, run)
);
CREATE INDEX label_run ON surefoot.label (run);

CREATE TABLE surefoot.word (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run bigint NOT NULL,
    key text NOT NULL,
    posting text NOT NULL UNIQUE,   -- made by whoever says it: said again after a lost answer, it is one word
    body bytea NOT NULL,
    outcome text NOT NULL DEFAULT '',
    detail text NOT NULL DEFAULT '',
    seq integer NOT NULL DEFAULT -1
);
CREATE UNIQUE INDEX word_key ON surefoot.word (run, md5(key)) WHERE key <> '';
CREATE INDEX word_unheard ON surefoot.word (run) WHERE outcome = '';

CREATE TABLE surefoot.side (         -- what is kept beside the runs
    name text PRIMARY KEY,
    data bytea NOT NULL
);

CREATE FUNCTION surefoot.now() RETURNS double precision LANGUAGE sql VOLATILE AS
$$ SELECT extract(epoch FROM clock_timestamp())::double precision $$;

-- Whether a store may still go on with its runs. One whose lease ended while this server was down has some time more.
CREATE FUNCTION surefoot.lives(whose text) RETURNS boolean LANGUAGE sql VOLATILE AS $$
    SELECT EXISTS (
        SELECT 1 FROM surefoot.owner WHERE token = whose AND (
            until > surefoot.now()
            OR until < extract(epoch FROM pg_postmaster_start_time())
            AND extract(epoch FROM pg_postmaster_start_time()) + 15 > surefoot.now()))
$$;

-- Adds records to many runs of one owner at once. Gives the numbers of those that stood where the writer left them;
-- nothing is done to the others.
CREATE FUNCTION surefoot.append(
    is_synced boolean, whose text,
    runs bigint[], fences bigint[], places bigint[], heads bytea[], next_places bigint[], next_heads bytea[],
    event_runs bigint[], seqs bigint[], ats double precision[], versions bigint[], bodies bytea[], hashes bytea[],
    digests text[], data bytea[],
    summary_runs bigint[], summaries bytea[], statuses text[], standings text[], agents text[], claimants text[],
    waits boolean[], texts text[], label_runs bigint[], labels text[],
    words bigint[], word_runs bigint[], outcomes text[], details text[], word_seqs bigint[],
    freed bigint[], freed_fences bigint[], ready double precision[], hears boolean[]
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    taken bigint[];
BEGIN
    IF NOT is_synced THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    ELSIF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;
    WITH moved AS (
        UPDATE surefoot.run SET events = t.next_place, head = t.next_head
        FROM unnest(runs, fences, places, heads, next_places, next_heads)
            AS t (number, fence, place, head, next_place, next_head)
        WHERE run.number = t.number AND run.owner = whose AND run.fence = t.fence
            AND run.events = t.place AND run.head = t.head
        RETURNING run.number
    ) SELECT coalesce(array_agg(number), '{}') INTO taken FROM moved;
    IF cardinality(digests) > 0 THEN
        INSERT INTO surefoot.blob (digest, data)
        SELECT * FROM unnest(digests, data) AS t (digest, data) ORDER BY digest
        ON CONFLICT (digest) DO UPDATE SET first_at = now() WHERE blob.first_at < now() - interval '12 hours';
    END IF;
    IF cardinality(event_runs) > 0 THEN
        INSERT INTO surefoot.event (run, seq, at, version, body, hash)
        SELECT * FROM unnest(event_runs, seqs, ats, versions, bodies, hashes) AS t (run, seq, at, version, body, hash)
        WHERE t.run = ANY (taken);
    END IF;
    IF cardinality(words) > 0 THEN
        UPDATE surefoot.word SET outcome = t.outcome, detail = t.detail, seq = t.seq
        FROM unnest(words, word_runs, outcomes, details, word_seqs) AS t (number, run, outcome, detail, seq)
        WHERE word.number = t.number AND word.run = t.run AND t.run = ANY (taken);
    END IF;
    IF cardinality(summary_runs) > 0 THEN
        PERFORM pg_advisory_xact_lock(1937076837, 1);  -- changes are seen in the order of their numbers
        INSERT INTO surefoot.summary (run, body, status, standing, agent, waits, text, change)
        SELECT t.*, nextval('surefoot.change')
        FROM unnest(summary_runs, summaries, statuses, standings, agents, waits, texts)
            AS t (run, body, status, standing, agent, waits, text)
        WHERE t.run = ANY (taken)
        ON CONFLICT (run) DO UPDATE SET body = excluded.body, status = excluded.status, standing = excluded.standing,
            agent = excluded.agent, waits = excluded.waits, text = excluded.text,
            change = excluded.change;
        INSERT INTO surefoot.label (label, run) SELECT * FROM unnest(labels, label_runs) AS t (label, run)
        WHERE t.run = ANY (taken) ON CONFLICT DO NOTHING;
        UPDATE surefoot.run SET agent = t.agent FROM unnest(summary_runs, claimants) AS t (number, agent)
        WHERE run.number = t.number AND run.number = ANY (taken) AND run.agent <> t.agent;
    END IF;
    IF cardinality(freed) > 0 THEN
        PERFORM 1 FROM surefoot.run WHERE number = ANY (freed) AND owner = whose ORDER BY number FOR UPDATE;
        -- a statement of its own: it sees all words that were said before this lock
        UPDATE surefoot.run SET owner = '', ready_at = CASE
            WHEN t.hears AND EXISTS (SELECT 1 FROM surefoot.word WHERE word.run = t.number AND outcome = '')
                THEN surefoot.now()
            WHEN t.ready_at IS NOT NULL THEN greatest(t.ready_at, surefoot.now()) END
        FROM unnest(freed, freed_fences, ready, hears) AS t (number, fence, ready_at, hears)
        WHERE run.number = t.number AND run.owner = whose AND run.fence = t.fence
            AND (run.number = ANY (taken) OR run.number <> ALL (runs));  -- what failed is let go as it stands
    END IF;
    RETURN taken;
END $$;

DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX summary_text ON surefoot.summary USING gin (text gin_trgm_ops);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'without pg_trgm a list is searched row by row: %', SQLERRM;
END $$;
