-- What people and programs let be watched. The rules of the configuration and those that come along have no row here.
CREATE TABLE rules (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    owner TEXT REFERENCES accounts (id) ON DELETE SET NULL,
    maker TEXT NOT NULL CHECK (length(maker) <= 128), -- the same as text
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 150),
    body TEXT NOT NULL CHECK (length(body) <= 65536), -- the rule; JSON
    version INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (team, name)
);
CREATE INDEX rules_owner ON rules (owner);

-- What fired or is about to. The id is made of rule, subject and begin, so that two hubs that see the same write one row.
-- Without a team it is of a rule that all have, and is seen by whoever sees its machine.
CREATE TABLE alerts (
    id TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    team TEXT REFERENCES teams (id) ON DELETE CASCADE,
    rule TEXT NOT NULL CHECK (length(rule) <= 64),
    subject TEXT NOT NULL CHECK (length(subject) <= 1024),
    source TEXT CHECK (length(source) <= 255), -- the machine's id
    run TEXT CHECK (length(run) <= 255),
    severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
    state TEXT NOT NULL CHECK (state IN ('pending', 'firing', 'resolved')),
    began INTEGER NOT NULL,
    ended INTEGER,
    body TEXT NOT NULL CHECK (length(body) <= 65536), -- the alert; JSON
    acked_by TEXT CHECK (length(acked_by) <= 128),
    acked_at INTEGER,
    updated INTEGER NOT NULL
);
CREATE INDEX alerts_state ON alerts (state, began);
CREATE INDEX alerts_began ON alerts (began);
CREATE INDEX alerts_rule ON alerts (rule, began);
CREATE INDEX alerts_run ON alerts (run);
CREATE INDEX alerts_source ON alerts (source);

-- What happened to an alert, in its order.
CREATE TABLE alert_events (
    id INTEGER PRIMARY KEY,
    alert TEXT NOT NULL REFERENCES alerts (id) ON DELETE CASCADE,
    t INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 32),
    who TEXT NOT NULL CHECK (length(who) <= 128),
    words TEXT NOT NULL CHECK (length(words) <= 2048)
);
CREATE INDEX alert_events_alert ON alert_events (alert, id);

-- What must not be told for a while.
CREATE TABLE silences (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    maker TEXT NOT NULL CHECK (length(maker) <= 128),
    labels TEXT NOT NULL CHECK (length(labels) <= 4096), -- labels and patterns that all must fit; JSON
    begins INTEGER NOT NULL,
    ends INTEGER NOT NULL,
    comment TEXT NOT NULL CHECK (length(comment) <= 2000),
    held INTEGER NOT NULL -- notices that it held back
);
CREATE INDEX silences_team ON silences (team, ends);

-- Where notices go. What is secret of it stands in sealed alone.
CREATE TABLE channels (
    id TEXT PRIMARY KEY CHECK (length(id) = 26),
    team TEXT NOT NULL REFERENCES teams (id) ON DELETE CASCADE,
    maker TEXT NOT NULL CHECK (length(maker) <= 128),
    name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 150),
    kind TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 32),
    target TEXT NOT NULL CHECK (length(target) <= 512), -- what may be shown of where it goes
    settings TEXT NOT NULL CHECK (length(settings) <= 16384), -- what is no secret; JSON
    sealed BLOB,
    is_default BOOLEAN NOT NULL CHECK (is_default IN (FALSE, TRUE)),
    tested INTEGER, -- when a test was sent last
    updated INTEGER NOT NULL,
    UNIQUE (team, name)
);

-- Notices, written with the change of the alert that they tell, and kept a while after they went out.
CREATE TABLE outbox (
    id TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64),
    channel TEXT NOT NULL REFERENCES channels (id) ON DELETE CASCADE,
    group_key TEXT NOT NULL CHECK (length(group_key) <= 1024),
    seq INTEGER NOT NULL, -- the order within the group
    kind TEXT NOT NULL CHECK (kind IN ('firing', 'resolved', 'digest', 'test')),
    title TEXT NOT NULL CHECK (length(title) <= 512),
    body TEXT NOT NULL CHECK (length(body) <= 262144), -- the notice; JSON
    made INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('waiting', 'sent', 'failed', 'folded')),
    tries INTEGER NOT NULL,
    next INTEGER NOT NULL, -- not tried before
    lease INTEGER, -- until when somebody has it in hand
    holder TEXT CHECK (length(holder) <= 64),
    tried INTEGER, -- when it was tried last
    words TEXT NOT NULL CHECK (length(words) <= 1024) -- how that went
);
CREATE INDEX outbox_waiting ON outbox (state, next);
CREATE INDEX outbox_group ON outbox (channel, group_key, seq);
CREATE INDEX outbox_made ON outbox (made);

-- What a watcher has in mind, so that the next one goes on there.
CREATE TABLE alert_state (
    key TEXT PRIMARY KEY CHECK (length(key) BETWEEN 1 AND 512),
    body BLOB NOT NULL,
    updated INTEGER NOT NULL
);

-- Who of several hubs does what only one may do at a time.
CREATE TABLE leases (
    name TEXT PRIMARY KEY CHECK (length(name) BETWEEN 1 AND 128),
    holder TEXT NOT NULL CHECK (length(holder) <= 64),
    until INTEGER NOT NULL
);

-- What an account wants to be told of the runs of its logins.
ALTER TABLE accounts ADD COLUMN tell_finished BOOLEAN NOT NULL DEFAULT FALSE CHECK (tell_finished IN (FALSE, TRUE));
ALTER TABLE accounts ADD COLUMN tell_crashed BOOLEAN NOT NULL DEFAULT FALSE CHECK (tell_crashed IN (FALSE, TRUE));
