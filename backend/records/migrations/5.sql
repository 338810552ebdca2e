-- Which of several hubs has the link of a machine. Void when the lease `hub:ID` of that hub is over.
CREATE TABLE links (
    source TEXT PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    hub TEXT NOT NULL CHECK (length(hub) BETWEEN 1 AND 64),
    since INTEGER NOT NULL
);
CREATE INDEX links_hub ON links (hub);

-- Spans of sequences that the sample store has taken, whichever hub sent them.
CREATE TABLE coverage (
    source TEXT NOT NULL REFERENCES sources (id) ON DELETE CASCADE,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL CHECK (last >= first),
    PRIMARY KEY (source, first)
);

-- Which of several hubs judges a machine by rules: the one that had its link last, or, when that one's lease is over, the
-- one that tells.
CREATE TABLE watched (
    source TEXT PRIMARY KEY REFERENCES sources (id) ON DELETE CASCADE,
    hub TEXT NOT NULL CHECK (length(hub) BETWEEN 1 AND 64)
);
CREATE INDEX watched_hub ON watched (hub);

-- Whether who tells has heard of an alert: 0 not yet, 1 it has changed since, 2 yes. And why nobody is told of it.
ALTER TABLE alerts ADD COLUMN heard INTEGER NOT NULL DEFAULT 2 CHECK (heard BETWEEN 0 AND 2);
ALTER TABLE alerts ADD COLUMN held TEXT NOT NULL DEFAULT '' CHECK (length(held) <= 2048);
CREATE INDEX alerts_heard ON alerts (heard);
