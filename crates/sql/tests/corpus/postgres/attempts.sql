-- Attempts to do more than read, or to read past the tables: one an entry, entries apart by an empty line. The comment
-- before each begins with "refused:" when our policy must refuse it, with "looked up:" when only the catalog of the
-- database tells what it calls, so that it is refused there, and with "harmless:" when the transaction, the role or the
-- database itself must hold it.
-- All are for schema.sql beside this file. Add yours anywhere.

-- refused: stacked statements
SELECT 1; DROP TABLE customers

-- refused: stacked, behind a COMMIT that would leave the transaction
COMMIT; DROP SCHEMA public CASCADE

-- refused: stacked after a string that only looks open
SELECT 'a\'; DELETE FROM customers; --'

-- refused: stacked in brackets
(SELECT 1); INSERT INTO evil_log (who) VALUES ('x')

-- refused: stacked without space
SELECT 1;SELECT 2

-- refused: stacked behind a comment
SELECT 1 /* ; */ ; /* ; */ TRUNCATE customers --

-- refused: END, which some parsers take for the end
SELECT 1 END; DROP TABLE customers

-- refused: nested comments end where PostgreSQL says
SELECT 1 /* /* */ ; DROP TABLE customers; /* */ */ ; DELETE FROM customers

-- refused: a comment that ends at a carriage return
SELECT 1 -- x
; DELETE FROM customers

-- refused: an operator that swallows the beginning of a comment
SELECT 1 @-- 2
, evil_fn()

-- harmless: an operator before a comment of the other kind, which ends it
SELECT 1 +/* 2 */ 3

-- harmless: a hint that sets parameters; comments do not reach the server
SELECT /*+ Set(row_security off) */ * FROM customers

-- harmless: of other systems' comments that are code
SELECT 1 /*! ; DROP TABLE customers */

-- refused: a dollar quote that ends early
SELECT $a$ $$ $a$; DROP TABLE customers; SELECT $$ $$

-- harmless: a statement that is only text
SELECT $$; DROP TABLE customers; --$$

-- harmless: the same with a tag
SELECT $tag$'; DELETE FROM customers; $$ $tag$

-- refused: unicode escapes in a function's name
SELECT U&"pg\005fread_file"('/etc/passwd')

-- refused: unicode escapes with a sign of their own
SELECT U&"pg!005fread_file" UESCAPE '!' ('/etc/passwd')

-- refused: a string with such a sign
SELECT U&'d!0061ta' UESCAPE '!'

-- harmless: unicode escapes in text
SELECT U&'\0027; DROP TABLE customers; --'

-- harmless: escapes in text
SELECT E'\'; DROP TABLE customers; --'

-- refused: escapes that are no character
SELECT E'\xff\x27; DROP TABLE customers; --'

-- refused: a quote after a backslash
SELECT E'\\'; DROP TABLE customers; --'

-- refused: settings beside something else
SELECT 1, set_config('role', 'postgres', false)

-- refused: settings
SELECT set_config('app.tenant', '2', true)

-- refused: settings, qualified
SELECT pg_catalog.set_config('role', 'postgres', false)

-- refused: settings, quoted
SELECT "pg_catalog"."set_config"('role', 'postgres', false)

-- refused: settings, in capitals
SELECT SET_CONFIG('role', 'postgres', false)

-- refused: settings, with a comment before the bracket
SELECT set_config/* */
-- more
('role', 'postgres', false)

-- refused: settings in a condition
SELECT * FROM customers WHERE set_config('transaction_read_only', 'off', true) = 'off'

-- refused: settings in ORDER BY
SELECT * FROM customers ORDER BY set_config('a.b', name, true)

-- refused: settings in LIMIT
SELECT 1 LIMIT (SELECT length(set_config('a.b', 'c', true)))

-- refused: settings in a subscript
SELECT (ARRAY[1, 2])[length(set_config('a.b', 'c', true))]

-- refused: settings in a slice
SELECT (ARRAY[1, 2])[1 : length(set_config('a.b', 'c', true))]

-- refused: settings in VALUES
VALUES (set_config('a.b', 'c', true))

-- refused: settings in an argument with a name
SELECT make_interval(days => length(set_config('a.b', 'c', true)))

-- refused: settings in a FILTER
SELECT count(*) FILTER (WHERE set_config('a.b', 'c', true) IS NOT NULL) FROM customers

-- refused: settings in a window
SELECT sum(id) OVER (PARTITION BY set_config('a.b', 'c', true)) FROM customers

-- refused: settings in a frame
SELECT sum(id) OVER (ORDER BY id ROWS length(set_config('a.b', 'c', true)) PRECEDING) FROM customers

-- refused: settings in a named window
SELECT sum(id) OVER w FROM customers WINDOW w AS (ORDER BY set_config('a.b', 'c', true))

-- refused: settings within a group
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY length(set_config('a.b', 'c', true))) FROM customers

-- refused: settings in an ordered aggregate
SELECT string_agg(name, ',' ORDER BY set_config('a.b', 'c', true)) FROM customers

-- refused: settings in GROUP BY
SELECT count(*) FROM customers GROUP BY GROUPING SETS ((set_config('a.b', 'c', true)), ())

-- refused: settings in HAVING
SELECT count(*) FROM customers HAVING set_config('a.b', 'c', true) = 'c'

-- refused: settings in DISTINCT ON
SELECT DISTINCT ON (set_config('a.b', 'c', true)) id FROM customers

-- refused: settings in a join
SELECT * FROM customers a JOIN customers b ON set_config('a.b', 'c', true) = 'c'

-- refused: settings in a CASE
SELECT CASE WHEN true THEN set_config('a.b', 'c', true) END

-- refused: settings in a cast
SELECT CAST(set_config('a.b', '1', true) AS integer)

-- refused: settings behind a type
SELECT set_config('a.b', '1', true)::integer

-- refused: settings in an array
SELECT ARRAY[set_config('a.b', 'c', true)], ROW(1, set_config('a.b', 'c', true))

-- refused: settings in IN
SELECT 'c' IN ('a', set_config('a.b', 'c', true))

-- refused: settings in a subquery of FROM
SELECT * FROM (SELECT set_config('a.b', 'c', true)) x

-- refused: settings in FROM
SELECT * FROM set_config('a.b', 'c', true)

-- refused: settings in LATERAL
SELECT * FROM customers c, LATERAL set_config('a.b', c.name, true) s

-- refused: settings among functions that only compute
SELECT * FROM generate_series(1, length(set_config('a.b', 'c', true)))

-- refused: settings under a sample
SELECT * FROM customers TABLESAMPLE BERNOULLI (length(set_config('a.b', 'c', true)))

-- refused: settings in a sample's seed
SELECT * FROM customers TABLESAMPLE BERNOULLI (50) REPEATABLE (length(set_config('a.b', 'c', true)))

-- refused: settings in a common table expression
WITH x AS MATERIALIZED (SELECT set_config('a.b', 'c', true)) SELECT 1 FROM x

-- refused: settings in a recursive one
WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + length(set_config('a.b', 'c', true)) FROM t WHERE n < 3) SELECT * FROM t

-- refused: settings behind AT TIME ZONE
SELECT now() AT TIME ZONE set_config('a.b', 'UTC', true)

-- refused: settings in EXTRACT
SELECT EXTRACT(year FROM set_config('a.b', '2024-01-01', true)::date)

-- refused: settings in SUBSTRING
SELECT substring('abc' FROM length(set_config('a.b', 'c', true)))

-- refused: settings in JSON
SELECT '{}'::jsonb -> set_config('a.b', 'c', true)

-- refused: settings in an XML table
SELECT * FROM xmltable('/r' PASSING xml (set_config('a.b', '<r/>', true)) COLUMNS n int)

-- refused: settings behind an operator with a schema
SELECT 1 OPERATOR(pg_catalog.+) length(set_config('a.b', 'c', true))

-- refused: settings within EXISTS
SELECT EXISTS (SELECT set_config('a.b', 'c', true))

-- refused: settings within ARRAY
SELECT ARRAY(SELECT set_config('a.b', 'c', true))

-- refused: settings in the second half of a union
SELECT 'a' UNION ALL SELECT set_config('a.b', 'c', true)

-- refused: functions called through a variable number of arguments
SELECT format('%s', VARIADIC ARRAY[set_config('a.b', 'c', true)])

-- refused: other ways of settings
SET ROLE postgres

-- refused: settings of the transaction
SET TRANSACTION READ WRITE

-- refused: settings of the session
SET SESSION AUTHORIZATION postgres

-- refused: settings for a while
SET LOCAL row_security = off

-- refused: settings taken back
RESET ALL

-- refused: everything taken back
DISCARD ALL

-- refused: a code block
DO $$ BEGIN DELETE FROM customers; END $$

-- refused: a code block in a language
DO LANGUAGE plpgsql 'BEGIN PERFORM 1; END'

-- refused: a procedure
CALL evil_fn()

-- refused: a prepared statement
PREPARE p AS DELETE FROM customers

-- refused: a prepared statement that runs
EXECUTE p

-- refused: a cursor
DECLARE c CURSOR WITH HOLD FOR SELECT evil_fn()

-- refused: a cursor that is read
FETCH ALL FROM c

-- refused: a file written
COPY customers TO '/tmp/customers.csv'

-- refused: a program run
COPY (SELECT 1) TO PROGRAM 'touch /tmp/owned'

-- refused: a file read
COPY customers FROM '/etc/passwd'

-- refused: the connection's own stream
COPY customers TO STDOUT

-- refused: notices
LISTEN evil

-- refused: notices sent
NOTIFY evil, 'hello'

-- refused: notices no more
UNLISTEN *

-- refused: notices by function
SELECT pg_notify('evil', 'hello')

-- refused: locks
LOCK TABLE customers IN ACCESS EXCLUSIVE MODE

-- refused: advisory locks
SELECT pg_advisory_lock(1)

-- refused: advisory locks that do not wait
SELECT pg_try_advisory_xact_lock_shared(1, 2)

-- refused: advisory locks, unlocked
SELECT pg_advisory_unlock_all()

-- refused: rows locked
SELECT * FROM customers FOR UPDATE

-- refused: rows locked of one table
SELECT * FROM customers c FOR NO KEY UPDATE OF c SKIP LOCKED

-- refused: rows shared
SELECT * FROM customers FOR SHARE NOWAIT

-- refused: keys shared
SELECT * FROM customers FOR KEY SHARE

-- refused: rows locked within
SELECT * FROM (SELECT * FROM customers FOR UPDATE) x

-- refused: rows locked in an expression
WITH x AS (SELECT * FROM customers FOR UPDATE) SELECT count(*) FROM x

-- refused: a table made
SELECT * INTO evil_copy FROM customers

-- refused: a table made for the session
SELECT id INTO TEMPORARY TABLE evil_copy FROM customers

-- refused: a table made in a union
SELECT 1 AS n INTO evil_copy UNION SELECT 2

-- refused: a table made behind a common table expression
WITH x AS (SELECT 1) SELECT * INTO UNLOGGED evil_copy FROM x

-- refused: CREATE
CREATE TABLE evil_copy AS SELECT * FROM customers

-- refused: CREATE for the session
CREATE TEMP TABLE evil_copy (n integer)

-- refused: a writable common table expression
WITH gone AS (DELETE FROM customers RETURNING *) SELECT * FROM gone

-- refused: one that inserts
WITH new AS (INSERT INTO evil_log (who) VALUES ('x') RETURNING who) SELECT * FROM new

-- refused: one that updates
WITH new AS (UPDATE customers SET credit = 0 RETURNING id) SELECT count(*) FROM new

-- refused: one that nobody reads
WITH gone AS (DELETE FROM customers) SELECT 1

-- refused: one within another
WITH a AS (WITH b AS (DELETE FROM customers RETURNING id) SELECT * FROM b) SELECT * FROM a

-- refused: one that merges
WITH m AS (MERGE INTO customers c USING orders o ON c.id = o.customer_id WHEN MATCHED THEN DELETE RETURNING c.id) SELECT * FROM m

-- refused: a common table expression before what writes
WITH x AS (SELECT 1) DELETE FROM customers

-- refused: likewise, of another kind
WITH x AS (SELECT 1) INSERT INTO evil_log (who) SELECT 'x'

-- refused: plain writing
DELETE FROM customers

-- refused: likewise
UPDATE customers SET credit = 0

-- refused: likewise
INSERT INTO evil_log (who) VALUES ('x')

-- refused: likewise
MERGE INTO customers c USING orders o ON c.id = o.customer_id WHEN MATCHED THEN DELETE

-- refused: all rows
TRUNCATE customers

-- refused: an explanation that runs
EXPLAIN ANALYZE DELETE FROM customers

-- refused: maintenance
VACUUM FULL customers

-- refused: maintenance
REINDEX TABLE customers

-- refused: maintenance
REFRESH MATERIALIZED VIEW evil_view

-- refused: rights
GRANT ALL ON customers TO public

-- refused: roles
ALTER ROLE postgres SUPERUSER

-- refused: extensions
CREATE EXTENSION dblink

-- refused: libraries
LOAD 'plpgsql'

-- refused: functions of one's own
CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'

-- refused: the next number of a sequence
SELECT nextval('ticket')

-- refused: the next number, in FROM
SELECT * FROM nextval('ticket') AS n

-- refused: a sequence set
SELECT setval('ticket', 1)

-- refused: large objects
SELECT lo_import('/etc/passwd')

-- refused: large objects written to files
SELECT lo_export(1, '/tmp/x')

-- refused: large objects made
SELECT lo_from_bytea(0, '\x00'), lo_create(0), lo_unlink(1), lo_put(1, 0, '\x00')

-- refused: large objects opened
SELECT lowrite(lo_open(1, 131072), '\x00')

-- refused: large objects read
SELECT loread(1, 10)

-- refused: other systems
SELECT * FROM dblink('host=example.com', 'SELECT 1') AS t (a integer)

-- refused: other systems, kept open
SELECT dblink_connect('c', 'dbname=postgres')

-- refused: other systems, run there
SELECT dblink_exec('dbname=postgres', 'DROP TABLE customers')

-- refused: files read
SELECT pg_read_file('/etc/passwd')

-- refused: files read as bytes
SELECT pg_catalog.pg_read_binary_file('/etc/passwd')

-- refused: folders
SELECT * FROM pg_ls_dir('/')

-- refused: files looked at
SELECT (pg_stat_file('/etc/passwd')).size

-- refused: files written
SELECT pg_file_write('x', 'y', false)

-- refused: logs
SELECT * FROM pg_ls_logdir()

-- refused: files of a network
SELECT content FROM http_get('http://169.254.169.254/')

-- refused: files of a network, later
SELECT net.http_post('http://example.com', '{}')

-- refused: jobs
SELECT cron.schedule('* * * * *', 'DELETE FROM customers')

-- refused: buckets
SELECT * FROM aws_s3.query_export_to_s3('SELECT 1', 'b')

-- refused: SQL as text
SELECT query_to_xml('SELECT * FROM customers', true, true, '')

-- refused: tables as text
SELECT table_to_xml('customers', true, true, '')

-- refused: a schema as text
SELECT schema_to_xml_and_xmlschema('public', true, true, '')

-- refused: a database as text
SELECT database_to_xml(true, true, '')

-- refused: a cursor as text
SELECT cursor_to_xml('c', 1, true, true, '')

-- refused: SQL as text, of text search
SELECT * FROM ts_stat('SELECT evil_fn()::text::tsvector')

-- refused: SQL as text, of text search
SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')

-- refused: SQL as text, of tables turned
SELECT * FROM crosstab('SELECT 1, 2, 3') AS t (a integer, b integer)

-- refused: SQL as text, of routes
SELECT * FROM pgr_dijkstra('SELECT 1', 1, 2)

-- refused: time spent
SELECT pg_sleep(100)

-- refused: time spent until
SELECT pg_sleep_until('2999-01-01')

-- refused: time spent for each row
SELECT count(*) FROM customers WHERE pg_sleep_for('1 second') IS NULL

-- refused: other sessions ended
SELECT pg_terminate_backend(pid) FROM pg_stat_activity

-- refused: other sessions stopped
SELECT pg_cancel_backend(1)

-- refused: the server's configuration
SELECT pg_reload_conf()

-- refused: the server's log
SELECT pg_rotate_logfile(), pg_log_backend_memory_contexts(1)

-- refused: statistics
SELECT pg_stat_reset(), pg_stat_statements_reset()

-- refused: statistics of a table
SELECT pg_stat_reset_single_table_counters('customers'::regclass)

-- refused: replication
SELECT pg_create_logical_replication_slot('s', 'test_decoding')

-- refused: replication that reads ahead
SELECT * FROM pg_logical_slot_get_changes('s', NULL, NULL)

-- refused: messages in the log of changes
SELECT pg_logical_emit_message(false, 'a', 'b')

-- refused: the log of changes
SELECT pg_switch_wal()

-- refused: a backup
SELECT pg_backup_start('x', true)

-- refused: a standby made primary
SELECT pg_promote()

-- refused: snapshots given away
SELECT pg_export_snapshot()

-- refused: transaction numbers
SELECT txid_current()

-- refused: transaction numbers
SELECT pg_current_xact_id()

-- refused: caches
SELECT pg_prewarm('customers')

-- refused: indexes
SELECT gin_clean_pending_list('x'), brin_summarize_new_values('x')

-- refused: pages past row security
SELECT get_raw_page('customers', 0)

-- refused: pages past row security, in FROM
SELECT * FROM heap_page_items(get_raw_page('customers', 0))

-- refused: the dump's mark
SELECT pg_extension_config_dump('customers', '')

-- refused: whatever a later version brings
SELECT pg_something_that_is_not_known_yet()

-- refused: randomness that is repeated
SELECT setseed(0.5)

-- looked up: rows of a function of the database's own
SELECT * FROM evil_rows()

-- looked up: likewise in LATERAL
SELECT * FROM customers c, LATERAL evil_of(c) AS x

-- harmless: a known name in another schema
SELECT * FROM evil.generate_series(1, 2)

-- looked up: several functions side by side
SELECT * FROM ROWS FROM (evil_rows(), generate_series(1, 2)) AS t (a, b)

-- refused: a function as a table, of another system
SELECT * FROM TABLE(evil_rows())

-- harmless: a name that is computed
SELECT * FROM identifier('customers')

-- refused: a pipe to a function
FROM customers |> CALL evil_rows()

-- refused: files as tables, as other systems have them
SELECT * FROM '/etc/passwd'

-- refused: a placeholder of another system
SELECT * FROM customers WHERE name = :name

-- refused: a client's command
\! touch /tmp/owned

-- refused: a client's command that runs what was selected
SELECT 'DROP TABLE customers' \gexec

-- refused: a function of another system's calling
SELECT {fn set_config('a.b', 'c', true)}

-- refused: odd space
SELECT set_config('a.b', 'c', true)

-- refused: a space that is a letter to PostgreSQL
SELECT evil_fn ()

-- looked up: a function that writes
SELECT evil_fn()

-- looked up: a function that writes, quoted
SELECT "public"."evil_fn"()

-- looked up: a function called as if it were a column
SELECT c.evil_of FROM customers c

-- looked up: a function called as if it were a field
SELECT (c).evil_of FROM customers c

-- looked up: a function that writes, for each row
SELECT name FROM customers ORDER BY evil_fn()

-- looked up: rows of a function, not in FROM
SELECT evil_rows()

-- harmless: a view over a function
SELECT * FROM evil_view

-- harmless: a view over a function, as a table
TABLE evil_view

-- looked up: an operator that calls a function
SELECT 'a' ~~~ 'b'

-- looked up: an operator that calls a function, with its schema
SELECT 'a' OPERATOR(public.~~~) 'b'

-- refused: an operator with its schema, of any
SELECT name FROM customers WHERE name OPERATOR(public.~~~) ANY (tags)

-- looked up: a cast that calls a function
SELECT 'x'::text::evil_type

-- looked up: a cast that calls a function, in full
SELECT CAST(name AS evil_type) FROM customers

-- looked up: an aggregate that calls a function
SELECT evil_sum(id) FROM customers

-- looked up: an aggregate that calls a function, over a window
SELECT evil_sum(id) OVER (ORDER BY id) FROM customers

-- harmless: names of functions are only names
SELECT 'pg_reload_conf'::regproc, 'set_config(text, text, boolean)'::regprocedure

-- harmless: a table whose name says so
SELECT * FROM (SELECT 1 AS n) AS "set_config"

-- refused: hashes of passwords, which a superuser may read
SELECT rolname, rolpassword FROM pg_authid

-- refused: the same in upper case, with the schema
SELECT rolpassword FROM PG_CATALOG.PG_AUTHID

-- refused: the same in quotes
SELECT "rolpassword" FROM "pg_catalog"."pg_authid"

-- refused: the same as a command
TABLE pg_catalog.pg_authid

-- refused: the same in a subquery
SELECT (SELECT string_agg(a.rolpassword, ',') FROM pg_authid AS a)

-- refused: the same by the view for older programs
SELECT usename, passwd FROM pg_shadow

-- harmless: settings, read
SELECT current_setting('data_directory', true), name FROM pg_settings LIMIT 1

-- harmless: a great number of rows, which the caller's bounds end
SELECT count(*) FROM generate_series(1, 1000) a, generate_series(1, 1000) b

-- refused: what others do, as far as the role may see it
SELECT query FROM pg_stat_activity

-- refused: sessions of the same role ended
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()

-- refused: settings of all later transactions
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE

-- refused: settings for whoever gets the connection next
SET work_mem = '1GB'

-- refused: settings for whoever gets the connection next, by function
SELECT set_config('search_path', 'archive', false)

-- refused: the end of the transaction, alone
COMMIT

-- refused: the end of the transaction, and another
ROLLBACK AND CHAIN

-- refused: a point to go back to
SAVEPOINT s

-- refused: statements taken from whoever prepared them
DEALLOCATE ALL

-- refused: cursors closed
CLOSE ALL

-- refused: a large object made
SELECT lo_create(0)

-- refused: a large object made of bytes
SELECT lo_from_bytea(0, 'x')

-- refused: statistics of the database
SELECT pg_stat_reset()

-- refused: an explanation that runs what it explains
EXPLAIN (ANALYZE) SELECT evil_fn()

-- looked up: a function that writes with its owner's rights
SELECT evil_as_owner()

-- looked up: a function that writes by the default of an argument
SELECT evil_default()

-- looked up: a function that writes in the check of a domain
SELECT 'x'::evil_domain

-- looked up: the same with a type and a string
SELECT evil_domain 'x'

-- looked up: a cast of a row to a type whose member is cast
SELECT ROW('x'::text)::evil_holder

-- looked up: an order by an operator that calls a function
SELECT name FROM customers ORDER BY name USING ~~~

-- looked up: a function beside an exclusion of rows
SELECT sum(evil_fn()) OVER (ORDER BY id ROWS 1 PRECEDING EXCLUDE TIES) FROM customers

-- looked up: a function in an XML element
SELECT xmlelement(name a, xmlattributes(evil_fn() AS b))

-- looked up: fields of rows of a function
SELECT (evil_cast(name)).* FROM customers

-- looked up: a function of the search of a common table expression
WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + evil_fn() FROM t WHERE n < 3) SEARCH DEPTH FIRST BY n SET o SELECT * FROM t

-- refused: settings in the mark of a cycle
WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) CYCLE n SET c TO set_config('a.b', 'c', true) DEFAULT 'x' USING p SELECT * FROM t

-- refused: settings among several functions
SELECT * FROM ROWS FROM (generate_series(1, 2), set_config('a.b', 'c', true)) AS t (a, b)

-- refused: settings in an XML element
SELECT xmlelement(name a, xmlattributes(set_config('a.b', 'c', true) AS b))

-- refused: what others do, by the function of the view
SELECT (pg_stat_get_activity(NULL)).query

-- refused: what others do, by the function of the view, in FROM
SELECT query FROM pg_stat_get_activity(NULL)

-- refused: what others do, one session after the other
SELECT pg_stat_get_backend_activity(n) FROM generate_series(0, 200) AS n

-- refused: how busy others are
SELECT pg_stat_get_db_numbackends(1)

-- refused: the locks of others
SELECT mode FROM pg_locks

-- refused: the locks of others, by function
SELECT (pg_lock_status()).mode

-- refused: the statements that others prepared, by function
SELECT statement FROM pg_prepared_statement()

-- refused: the cursors of others, by function
SELECT (pg_cursor()).statement

-- refused: statements with their times
SELECT query FROM pg_stat_statements(true)

-- refused: all settings, by function
SELECT (pg_show_all_settings()).setting

-- refused: passwords of other systems
SELECT umoptions FROM pg_user_mappings

-- refused: passwords of other systems, by the standard's name
SELECT option_value FROM information_schema.user_mapping_options

-- refused: passwords of other systems, in the table of the view
SELECT umoptions FROM pg_catalog.pg_user_mapping

-- refused: the connection strings of subscriptions
SELECT subconninfo FROM pg_subscription

-- refused: large objects as they are stored
SELECT data FROM pg_largeobject

-- refused: long values as they are stored
SELECT chunk_data FROM pg_toast.pg_toast_1255

-- refused: the rules of access
SELECT * FROM pg_hba_file_rules

-- refused: the files of the configuration
SELECT name, setting FROM pg_file_settings

-- refused: a function of the server as if it were a field of a value
SELECT (0.01::float8).pg_sleep

-- refused: a function of the server as if it were a column of a value
SELECT x.pg_sleep FROM unnest(ARRAY[0.01::float8]) AS x

-- looked up: a function called as if it were a field of a text
SELECT (name).evil_cast FROM customers

-- looked up: a function called as if it were a column of a value
SELECT x.evil_cast FROM unnest(ARRAY['a']) AS x

-- looked up: a cast to a domain over a domain
SELECT 'x'::evil_over

-- looked up: a cast to a row of domains
SELECT '("{x}")'::evil_outer

-- looked up: the row type of an argument
SELECT jsonb_populate_record(NULL::evil_outer, '{"inner_row": ["x"]}')
