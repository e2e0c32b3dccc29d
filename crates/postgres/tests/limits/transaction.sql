-- What a transaction that may only read does not hold by itself, when a superuser runs it: why no superuser should.
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

-- leaves secrets: reading a file of the server is no writing
SELECT pg_read_file('/etc/passwd')

-- leaves secrets: the same as bytes
SELECT pg_catalog.pg_read_binary_file('/etc/passwd')

-- leaves secrets: the same in disguise
SELECT U&"pg\005fread_file"('/etc/passwd')

-- leaves secrets: the same in another disguise
SELECT U&"pg!005fread_file" UESCAPE '!' ('/etc/passwd')

-- leaves secrets: the verifiers of passwords
SELECT rolname, rolpassword FROM pg_authid

-- leaves secrets: the same in upper case, with the schema
SELECT rolpassword FROM PG_CATALOG.PG_AUTHID

-- leaves secrets: the same in quotes
SELECT "rolpassword" FROM "pg_catalog"."pg_authid"

-- leaves secrets: the same as a command
TABLE pg_catalog.pg_authid

-- leaves secrets: the same in a subquery
SELECT (SELECT string_agg(a.rolpassword, ',') FROM pg_authid AS a)

-- leaves secrets: the same by the view for older programs
SELECT usename, passwd FROM pg_shadow

-- may leave secrets: the objects hold what other attempts have read
SELECT data FROM pg_largeobject

-- leaves files: a file of the server is no table
COPY customers TO '/tmp/customers.csv'

-- leaves files: a program may do anything
COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'

-- leaves locks: nobody else reads the table until the transaction ends
LOCK TABLE customers IN ACCESS EXCLUSIVE MODE

-- leaves definitions, locks: indexes made anew change no row
REINDEX TABLE customers

-- leaves large objects, locks until 15: large objects were not held before version 16
SELECT lo_import('/etc/passwd')

-- leaves statistics: counters are no rows
SELECT pg_stat_reset_single_table_counters('customers'::regclass)

-- leaves log of changes: the log goes on in a new file
SELECT pg_switch_wal()

-- leaves secrets: a superuser sees everybody's statements
SELECT query FROM pg_stat_activity

-- may leave sessions: which sessions end depends on when its own does
SELECT pg_terminate_backend(pid) FROM pg_stat_activity


-- leaves sessions: all of the superuser's, however many
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

-- leaves large objects, locks until 15: large objects were not held before version 16
SELECT lo_create(0)

-- leaves large objects, locks until 15: the same with bytes
SELECT lo_from_bytea(0, 'x')

-- leaves statistics: counters are no rows
SELECT pg_stat_reset()

-- leaves secrets: a superuser sees everybody's statements, also by the function of the view
SELECT (pg_stat_get_activity(NULL)).query

-- leaves secrets: the same in FROM
SELECT query FROM pg_stat_get_activity(NULL)

-- leaves secrets: the same, one session after the other
SELECT pg_stat_get_backend_activity(n) FROM generate_series(0, 200) AS n

-- may leave log of changes: a backup begins a new file of the log; by default, a server writes enough for one
SELECT pg_backup_start('x', true)
