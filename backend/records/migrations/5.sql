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
