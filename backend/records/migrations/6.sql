-- The address for mail of an account as somebody else named it: a provider, the proxy, or who invited. Notices go to an
-- address alone that is this one, for anybody can type a stranger's.
ALTER TABLE accounts ADD COLUMN vouched_email TEXT CHECK (length(vouched_email) <= 254);
