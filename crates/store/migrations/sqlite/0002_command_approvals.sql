-- Command lines that a person approved: the gate starts no other one. A changed one has another digest.
CREATE TABLE command_approval (
    server TEXT NOT NULL,
    digest BLOB NOT NULL,
    approved INTEGER NOT NULL,
    note TEXT,
    PRIMARY KEY (server, digest)
) STRICT;
