-- Times are milliseconds since the Unix epoch. Ids are 26 letters, but for the hub's own machine, whose id is its host name.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE accounts (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 64),
    email TEXT CHECK (length(email) <= 254),
    hub_admin BOOLEAN NOT NULL CHECK (hub_admin IN (FALSE, TRUE)),
    state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
    revision INTEGER NOT NULL,
    created INTEGER NOT NULL
);

CREATE TABLE identities (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('password')),
    issuer TEXT NOT NULL CHECK (length(issuer) <= 512),
    subject TEXT NOT NULL CHECK (length(subject) <= 512),
    data TEXT NOT NULL CHECK (length(data) <= 4096),
    UNIQUE (issuer, subject)
);
CREATE INDEX identities_account ON identities (account);

CREATE TABLE sessions (
    id_hash BLOB PRIMARY KEY CHECK (length(id_hash) = 32),
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    kind TEXT NOT NULL CHECK (kind IN ('password', 'code')),
    made INTEGER NOT NULL,
    proved INTEGER NOT NULL, -- when the password was given last
    seen INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    network TEXT NOT NULL CHECK (length(network) <= 64)
);
CREATE INDEX sessions_account ON sessions (account, made);

CREATE TABLE codes (
    hash BLOB PRIMARY KEY CHECK (length(hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('setup', 'invite', 'reset')),
    account TEXT REFERENCES accounts (id) ON DELETE CASCADE,
    team TEXT,
    role TEXT,
    ends INTEGER NOT NULL
);

CREATE TABLE teams (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 64),
    settings TEXT NOT NULL CHECK (length(settings) <= 4096)
);

CREATE TABLE members (
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    account TEXT NOT NULL REFERENCES accounts (id) ON DELETE CASCADE,
    role TEXT NOT NULL CHECK (role IN ('viewer', 'member', 'admin')),
    PRIMARY KEY (team, account)
);
CREATE INDEX members_account ON members (account);

-- An ended key's row stays, so that its holder can be told why it ended.
CREATE TABLE keys (
    id TEXT PRIMARY KEY CHECK (length(id) = 12),
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('p', 's', 'a', 'j')),
    name TEXT NOT NULL CHECK (length(name) <= 64),
    team TEXT NOT NULL REFERENCES teams (id),
    owner TEXT REFERENCES accounts (id) ON DELETE CASCADE,
    scopes TEXT NOT NULL CHECK (length(scopes) <= 512),
    source TEXT,
    settings TEXT NOT NULL CHECK (length(settings) <= 16384),
    uses INTEGER, -- how many more; none: any number
    joined INTEGER NOT NULL, -- how many machines
    made INTEGER NOT NULL,
    ends INTEGER,
    ended INTEGER,
    why TEXT CHECK (why IN ('ended', 'revoked', 'replaced', 'removed', 'leaked')),
    used INTEGER,
    network TEXT CHECK (length(network) <= 64)
);
CREATE INDEX keys_source ON keys (source);
CREATE INDEX keys_team ON keys (team, kind);

CREATE TABLE sources (
    id TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 255),
    team TEXT NOT NULL REFERENCES teams (id),
    name TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 255),
    labels TEXT NOT NULL CHECK (length(labels) <= 16384),
    state TEXT NOT NULL CHECK (state IN ('own', 'pending', 'active', 'revoked')),
    ephemeral BOOLEAN NOT NULL CHECK (ephemeral IN (FALSE, TRUE)),
    by_name TEXT, -- the name that it gave itself when it joined
    machine TEXT CHECK (length(machine) <= 64),
    links TEXT NOT NULL CHECK (length(links) <= 8192),
    host TEXT CHECK (length(host) <= 255),
    platform TEXT CHECK (length(platform) <= 256),
    version TEXT CHECK (length(version) <= 64),
    facts TEXT CHECK (length(facts) <= 65536),
    first_seen INTEGER NOT NULL,
    last_seen INTEGER
);
CREATE INDEX sources_team ON sources (team);
CREATE INDEX sources_machine ON sources (machine);

CREATE TABLE aliases (
    name TEXT PRIMARY KEY,
    source TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    until INTEGER NOT NULL
);

CREATE TABLE enrolments (
    request TEXT PRIMARY KEY CHECK (length(request) = 32),
    source TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    join_key TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'approved')),
    made INTEGER NOT NULL,
    asked INTEGER NOT NULL
);
CREATE INDEX enrolments_source ON enrolments (source);

CREATE TABLE eras (
    source TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    shift INTEGER NOT NULL,
    skew INTEGER NOT NULL,
    rtt INTEGER NOT NULL,
    PRIMARY KEY (source, first)
);

-- What was removed of a source by its sequences; its id never comes back.
CREATE TABLE erased (source TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY (source, first));

CREATE TABLE audit (
    id INTEGER PRIMARY KEY,
    t INTEGER NOT NULL,
    who TEXT NOT NULL,
    by TEXT NOT NULL,
    network TEXT NOT NULL,
    action TEXT NOT NULL,
    team TEXT,
    object TEXT NOT NULL,
    before TEXT,
    after TEXT,
    result TEXT NOT NULL
);
CREATE INDEX audit_t ON audit (t);
