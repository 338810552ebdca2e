-- Which teams see which machine; its own team is one of them at first.
CREATE TABLE grants (
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    source TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    PRIMARY KEY (team, source)
);
CREATE INDEX grants_source ON grants (source);
INSERT INTO grants (team, source) SELECT team, id FROM sources;

-- Names of users on machines; JSON.
ALTER TABLE members ADD COLUMN logins TEXT NOT NULL DEFAULT '[]' CHECK (length(logins) <= 4096);

-- Accounts of programs.
CREATE TABLE services (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    role TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin')),
    state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
    made INTEGER NOT NULL,
    UNIQUE (team, name)
);
ALTER TABLE keys ADD COLUMN service TEXT REFERENCES services (id) ON DELETE CASCADE;
CREATE INDEX keys_owner ON keys (owner);
CREATE INDEX keys_service ON keys (service);

-- Others than the hub may vouch for an account.
CREATE TABLE identities_2 (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('password', 'oidc', 'github', 'proxy')),
    issuer TEXT NOT NULL CHECK (length(issuer) <= 512),
    subject TEXT NOT NULL CHECK (length(subject) <= 512),
    data TEXT NOT NULL CHECK (length(data) <= 4096),
    UNIQUE (issuer, subject)
);
INSERT INTO identities_2 (id, account, kind, issuer, subject, data)
    SELECT id, account, kind, issuer, subject, data FROM identities;
DROP TABLE identities;
ALTER TABLE identities_2 RENAME TO identities;
CREATE INDEX identities_account ON identities (account);

CREATE TABLE sessions_2 (
    id_hash BLOB PRIMARY KEY CHECK (length(id_hash) = 32),
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('password', 'code', 'oidc', 'github', 'proxy')),
    made INTEGER NOT NULL,
    proved INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    network TEXT NOT NULL CHECK (length(network) <= 64)
);
INSERT INTO sessions_2 (id_hash, account, kind, made, proved, seen, ends, network)
    SELECT id_hash, account, kind, made, proved, seen, ends, network FROM sessions;
DROP TABLE sessions;
ALTER TABLE sessions_2 RENAME TO sessions;
CREATE INDEX sessions_account ON sessions (account, made);

-- What waits here can be made again.
DROP TABLE codes;
CREATE TABLE codes (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    id TEXT NOT NULL UNIQUE CHECK (length(id) = 26),
    kind TEXT NOT NULL CHECK (kind IN ('setup', 'invite', 'reset', 'oidc')),
    account TEXT REFERENCES accounts (id) ON DELETE CASCADE,
    team TEXT REFERENCES teams (id) ON DELETE CASCADE,
    role TEXT,
    owner TEXT REFERENCES accounts (id) ON DELETE CASCADE, -- who invited
    maker TEXT NOT NULL CHECK (length(maker) <= 128), -- the same as text
    email TEXT CHECK (length(email) <= 254),
    data TEXT NOT NULL CHECK (length(data) <= 8192),
    made INTEGER NOT NULL,
    ends INTEGER NOT NULL
);
CREATE INDEX codes_team ON codes (team);

-- Saved views. One that is a team's outlives its maker, whose name stays as text.
CREATE TABLE views (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    owner TEXT REFERENCES accounts (id) ON DELETE SET NULL,
    maker TEXT NOT NULL CHECK (length(maker) <= 128),
    scope TEXT NOT NULL CHECK (scope IN ('mine', 'team')),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    query TEXT NOT NULL CHECK (length(query) <= 8192),
    version INTEGER NOT NULL,
    updated INTEGER NOT NULL
);
CREATE INDEX views_team ON views (team, name);
CREATE INDEX views_owner ON views (owner);

-- Links to one view, for whoever has them. What they show is fixed when they are made.
CREATE TABLE shares (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    owner TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    maker TEXT NOT NULL CHECK (length(maker) <= 128),
    name TEXT NOT NULL CHECK (length(name) <= 64),
    query TEXT NOT NULL CHECK (length(query) <= 8192),
    sources TEXT NOT NULL CHECK (length(sources) <= 65536), -- ids; JSON
    span_from INTEGER, -- both or none; without them it is live
    span_to INTEGER,
    live_window INTEGER, -- ms
    note TEXT NOT NULL CHECK (length(note) <= 256),
    made INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    opens INTEGER NOT NULL,
    opened INTEGER
);
CREATE INDEX shares_team ON shares (team);
CREATE INDEX shares_owner ON shares (owner);

-- What was used, by day (days since the Unix epoch), team, and source or key; subject is empty for the team as a whole.
CREATE TABLE usage_days (
    day INTEGER NOT NULL,
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('day', 'source', 'key')),
    subject TEXT NOT NULL CHECK (length(subject) <= 255),
    measure TEXT NOT NULL CHECK (length(measure) <= 32),
    value DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (day, team, kind, subject, measure)
);
