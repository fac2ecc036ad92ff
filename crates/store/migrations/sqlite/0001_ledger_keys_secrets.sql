-- Why the ledger is laid out like this: see src/writer.rs.
CREATE TABLE ledger_chain (
    -- never given twice, even if a chain was deleted by hand
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    chain BLOB NOT NULL UNIQUE
) STRICT;

CREATE TABLE ledger (
    -- number of the chain * 2^40 + seq
    position INTEGER PRIMARY KEY,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    call BLOB,
    body TEXT NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE TABLE api_key (
    id TEXT PRIMARY KEY,
    hash BLOB NOT NULL,
    caller TEXT NOT NULL,
    added INTEGER NOT NULL,
    expires INTEGER,
    revoked INTEGER,
    note TEXT
) STRICT;

-- Counts the changes of api_key. Triggers do it, so that a key revoked by hand in SQL is noticed too.
CREATE TABLE api_key_version (version INTEGER NOT NULL) STRICT;
INSERT INTO api_key_version (version) VALUES (0);
CREATE TRIGGER api_key_added AFTER INSERT ON api_key
BEGIN UPDATE api_key_version SET version = version + 1; END;
CREATE TRIGGER api_key_changed AFTER UPDATE ON api_key
BEGIN UPDATE api_key_version SET version = version + 1; END;
CREATE TRIGGER api_key_removed AFTER DELETE ON api_key
BEGIN UPDATE api_key_version SET version = version + 1; END;

CREATE TABLE named_secret (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT;
