-- Changes of runs by people: other names, and runs that were deleted. The records of machines stay as they came, so that a
-- deleted run does not come back with a report that arrives late.
CREATE TABLE run_edits (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    run TEXT NOT NULL CHECK (length(run) BETWEEN 1 AND 64),
    team TEXT NOT NULL CHECK (length(team) <= 64), -- no reference: what was deleted stays deleted without the team
    machines TEXT NOT NULL CHECK (length(machines) <= 1048576), -- keys, each with the number of the job of an address; JSON
    began INTEGER NOT NULL,
    ended INTEGER,
    names TEXT NOT NULL CHECK (length(names) <= 262144), -- new names; JSON
    maker TEXT NOT NULL CHECK (length(maker) <= 128),
    version INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    deleted INTEGER
);
CREATE INDEX run_edits_run ON run_edits (run);
CREATE INDEX run_edits_team ON run_edits (team, updated);

-- Notes of people about machines and runs.
CREATE TABLE notes (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    owner TEXT REFERENCES accounts (id) ON DELETE SET NULL,
    maker TEXT NOT NULL CHECK (length(maker) <= 128),
    source TEXT NOT NULL CHECK (length(source) BETWEEN 1 AND 255), -- no reference: a server alone has no table of machines
    run TEXT CHECK (length(run) BETWEEN 1 AND 64),
    begins INTEGER NOT NULL,
    ends INTEGER CHECK (ends >= begins),
    text TEXT NOT NULL CHECK (length(text) BETWEEN 1 AND 2048),
    version INTEGER NOT NULL,
    updated INTEGER NOT NULL
);
CREATE INDEX notes_begins ON notes (begins);
CREATE INDEX notes_source ON notes (source, begins);
CREATE INDEX notes_team ON notes (team);
