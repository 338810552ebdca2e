-- What a deleted run has used by day, without its name: it counts for the usage of its team on.
ALTER TABLE run_edits ADD COLUMN used TEXT CHECK (length(used) <= 1048576); -- JSON
