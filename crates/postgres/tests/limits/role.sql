-- What a role that may only read does not hold by itself in a transaction that may write.
-- Each entry is one of attempts.sql, word for word, and names every trace that it leaves. All else there leaves none.

-- leaves transaction: what was set for the caller is taken back within its transaction
RESET ALL

-- leaves prepared statements, locks: it would fail only when it runs
PREPARE p AS DELETE FROM customers

-- leaves channels: listening is no writing
LISTEN evil

-- leaves notices: telling others is no writing
NOTIFY evil, 'hello'

-- leaves notices: the same as a function
SELECT pg_notify('evil', 'hello')

-- leaves locks, kept locks: anyone may take any; it outlives the transaction
SELECT pg_advisory_lock(1)

-- leaves locks: the same, until the transaction ends
SELECT pg_try_advisory_xact_lock_shared(1, 2)

-- leaves locks: a transaction number is taken, whatever the transaction may do
SELECT txid_current()

-- leaves locks: the same by its newer name
SELECT pg_current_xact_id()

-- leaves temporary tables, locks: everybody may make temporary tables, unless that is revoked from PUBLIC
SELECT id INTO TEMPORARY TABLE evil_copy FROM customers

-- leaves temporary tables, locks: the same
CREATE TEMP TABLE evil_copy (n integer)

-- leaves definitions, locks: nothing is granted, with a warning, but the table's row is written anew
GRANT ALL ON customers TO public

-- leaves secrets: sessions of one role see each other's statements, with the values written in them
SELECT query FROM pg_stat_activity

-- may leave sessions: a session of the same role may be ended, if it stands before the others
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
