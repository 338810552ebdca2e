-- What the browser or program calls itself that somebody is signed in with, shortened.
ALTER TABLE sessions ADD COLUMN agent TEXT NOT NULL DEFAULT '' CHECK (length(agent) <= 128);
