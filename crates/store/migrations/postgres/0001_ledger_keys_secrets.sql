-- Why the ledger is laid out like this: see src/writer.rs.
CREATE TABLE ledger_chain (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    chain BYTEA NOT NULL UNIQUE
);

CREATE TABLE ledger (
    -- number of the chain * 2^40 + seq
    position BIGINT PRIMARY KEY,
    time BIGINT NOT NULL,
    kind TEXT NOT NULL,
    call BYTEA,
    body TEXT NOT NULL,
    prev BYTEA NOT NULL,
    hash BYTEA NOT NULL
);

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    hash BYTEA NOT NULL,
    caller TEXT NOT NULL,
    added BIGINT NOT NULL,
    expires BIGINT,
    revoked BIGINT,
    note TEXT
);

-- Counts the changes of api_key. A trigger does it, so that a key revoked by hand in SQL is noticed too.
CREATE TABLE api_key_version (version BIGINT NOT NULL);
INSERT INTO api_key_version (version) VALUES (0);
CREATE FUNCTION api_key_count_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE api_key_version SET version = version + 1;
    RETURN NULL;
END $$;
CREATE TRIGGER api_key_changed AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON api_key
FOR EACH STATEMENT EXECUTE FUNCTION api_key_count_change();

CREATE TABLE named_secret (
    name TEXT PRIMARY KEY,
    value BYTEA NOT NULL
);
