-- What a role that may only read, in a transaction that may only read, does not hold by itself: the policy must.
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

-- leaves secrets: sessions of one role see each other's statements, with the values written in them
SELECT query FROM pg_stat_activity

-- may leave sessions: a session of the same role may be ended, if it stands before the others
SELECT pg_terminate_backend(pid) FROM pg_stat_activity


-- leaves sessions: sessions of one role may end each other
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()

-- leaves settings: a role's defaults are only defaults
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE

-- leaves settings: anyone may change what is not a superuser's
SET work_mem = '1GB'

-- leaves settings: the same by function
SELECT set_config('search_path', 'archive', false)

-- leaves transaction: no transaction holds its own end
COMMIT

-- leaves transaction: the same, and another begins
ROLLBACK AND CHAIN

-- leaves large objects, locks, roles and databases until 15: a transaction that may only read did not hold them before version 16
SELECT lo_create(0)

-- leaves large objects, locks, roles and databases until 15: the same with bytes
SELECT lo_from_bytea(0, 'x')

-- leaves secrets: sessions of one role see each other's statements, also by the function of the view
SELECT (pg_stat_get_activity(NULL)).query

-- leaves secrets: the same in FROM
SELECT query FROM pg_stat_get_activity(NULL)

-- leaves secrets: the same, one session after the other
SELECT pg_stat_get_backend_activity(n) FROM generate_series(0, 200) AS n
