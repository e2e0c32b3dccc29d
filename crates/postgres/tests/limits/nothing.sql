-- Said by a superuser in a transaction that may write: nothing holds it, and each leaves the traces that it names.
-- These acts are the test of the watch: every kind of trace stands here. The watcher goes first, since a new one looks at
-- the tables of that time.

-- leaves sessions: all other sessions ended
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()

-- leaves rows, locks: a row changed
UPDATE customers SET credit = 7 WHERE id = 1

-- leaves rows, locks: rows gone
DELETE FROM items

-- leaves rows, locks: a row of another schema
INSERT INTO archive.orders SELECT * FROM orders WHERE id = 14

-- leaves definitions, rows, locks: all rows at once
TRUNCATE archive.orders

-- leaves sequences, locks: a number taken
SELECT nextval('ticket')

-- leaves sequences, locks: the same number said not to be taken yet
SELECT setval('ticket', 100, false)

-- leaves definitions, locks: a table made
CREATE TABLE evil_copy AS SELECT * FROM customers

-- leaves definitions, locks: a function changed
ALTER FUNCTION evil_fn() SECURITY DEFINER

-- leaves definitions, locks: a comment
COMMENT ON TABLE orders IS 'sold'

-- leaves definitions, locks: a right given
GRANT UPDATE ON customers TO reader

-- leaves definitions, locks: a schema made
CREATE SCHEMA evil

-- leaves definitions, locks: an index made anew
REINDEX TABLE customers

-- leaves roles and databases, locks: a role made
CREATE ROLE evil SUPERUSER

-- leaves roles and databases, locks: a role changed
ALTER ROLE reader CONNECTION LIMIT 3

-- leaves roles and databases, locks: a setting of a role
ALTER ROLE reader SET search_path = archive

-- leaves roles and databases, locks: a setting of the database
ALTER DATABASE scene SET maintenance_work_mem = '2MB'

-- leaves roles and databases, locks: membership
GRANT pg_read_all_data TO reader

-- leaves large objects, locks: a large object made
SELECT lo_from_bytea(0, 'x')

-- leaves large objects, locks: a large object written
SELECT lo_put(4711, 0, 'X')

-- leaves files, locks: a large object written to a file
SELECT lo_export(4711, '/tmp/x')

-- leaves large objects, locks: a large object gone
SELECT lo_unlink(4711)

-- leaves files: a file written
COPY customers TO '/tmp/customers.csv'

-- leaves files: a program run
COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'

-- leaves secrets: a file read
SELECT pg_read_file('/etc/passwd')

-- leaves secrets: passwords read
SELECT rolname, rolpassword FROM pg_authid

-- leaves secrets: a table read that is not for everybody
SELECT * FROM vault

-- leaves secrets: what others ask
SELECT query FROM pg_stat_activity

-- leaves sessions: the session of another caller ended
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'

-- leaves statistics: counters begun anew
SELECT pg_stat_reset()

-- leaves log of changes: a new file begun
SELECT pg_switch_wal()

-- leaves notices: a notice sent
NOTIFY evil, 'hello'

-- leaves notices: the same notice again
SELECT pg_notify('evil', 'hello')

-- leaves channels: a channel listened to
LISTEN news

-- leaves locks, kept locks: a lock that outlives the transaction
SELECT pg_advisory_lock(1)

-- leaves locks: a lock that does not
SELECT pg_advisory_xact_lock(1)

-- leaves locks: a table locked
LOCK TABLE customers IN SHARE MODE

-- leaves locks: rows locked
SELECT id FROM customers FOR UPDATE

-- leaves locks: a transaction number
SELECT pg_current_xact_id()

-- leaves settings: a setting for whoever is next
SET work_mem = '1MB'

-- leaves settings: a setting that only names a caller
SELECT set_config('app.tenant', '2', false)

-- leaves settings: transactions that may write, from now on
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE

-- leaves identity, settings, transaction: another role
SET ROLE reader

-- leaves transaction: another role until the end of the transaction
SET LOCAL ROLE reader

-- leaves transaction: the transaction made one that may not write
SET TRANSACTION READ ONLY

-- leaves transaction: the transaction ended under whoever began it
COMMIT

-- leaves transaction: the same, and another begun
ROLLBACK AND CHAIN

-- leaves transaction: what was set for the caller taken back
RESET ALL

-- leaves prepared statements: a statement prepared
PREPARE p AS SELECT 1

-- leaves cursors: a cursor that outlives the transaction
DECLARE c CURSOR WITH HOLD FOR SELECT 1

-- leaves temporary tables, locks: a table of the session
CREATE TEMPORARY TABLE evil_copy (n integer)
