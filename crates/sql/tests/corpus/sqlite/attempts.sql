-- Attempts to do more than read, or to read past the tables: one an entry, entries apart by an empty line. The comment
-- before each begins with "refused:" when our policy must refuse it, and with "harmless:" when nothing in its words
-- tells what it does, so that the read-only connection and the authorizer must hold it.
-- All are for schema.sql beside this file. Add yours anywhere.

-- refused: stacked statements
SELECT 1; DROP TABLE customers

-- refused: stacked, without space
SELECT 1;DELETE FROM customers

-- refused: stacked behind a comment that does not nest here
SELECT 1 /* /* */ ; DROP TABLE customers -- */

-- refused: a comment that only starts
SELECT 1 /* DROP TABLE customers

-- refused: writing
INSERT INTO customers (name, joined) VALUES ('x', 'y')

-- refused: writing or replacing
REPLACE INTO customers (id, name, joined) VALUES (1, 'x', 'y')

-- refused: writing on a conflict
INSERT INTO customers (id, name, joined) VALUES (1, 'x', 'y') ON CONFLICT (id) DO UPDATE SET name = 'z'

-- refused: likewise
UPDATE OR IGNORE customers SET credit = 0

-- refused: likewise
DELETE FROM customers RETURNING *

-- refused: a common table expression before what writes
WITH x AS (SELECT 1) DELETE FROM customers

-- refused: likewise
WITH x AS (SELECT 1) INSERT INTO customers SELECT * FROM customers

-- refused: other files
ATTACH DATABASE '/tmp/other.db' AS other

-- refused: other files, by an expression
ATTACH '/tmp/' || 'x.db' AS other

-- refused: other files no more
DETACH other

-- refused: settings
PRAGMA writable_schema = 1

-- refused: settings read
PRAGMA table_info(customers)

-- refused: settings called
PRAGMA query_only(0)

-- refused: the file copied
VACUUM INTO '/tmp/copy.db'

-- refused: maintenance
REINDEX customers

-- refused: maintenance
ANALYZE

-- refused: tables
CREATE TABLE evil (n)

-- refused: tables for the session
CREATE TEMP TABLE evil AS SELECT * FROM customers

-- refused: triggers
CREATE TRIGGER evil AFTER INSERT ON customers BEGIN SELECT 1; END

-- refused: virtual tables
CREATE VIRTUAL TABLE evil USING csv (filename = '/etc/passwd')

-- refused: tables changed
ALTER TABLE customers RENAME TO evil

-- refused: tables dropped
DROP TABLE IF EXISTS customers

-- refused: transactions
BEGIN IMMEDIATE

-- refused: transactions that end
END TRANSACTION

-- refused: transactions within
SAVEPOINT evil

-- refused: likewise
RELEASE evil

-- refused: an explanation
EXPLAIN QUERY PLAN SELECT 1

-- refused: extensions
SELECT load_extension('/tmp/evil.so')

-- refused: extensions, quoted
SELECT "load_extension"('/tmp/evil.so', 'init')

-- refused: extensions, in brackets
SELECT [load_extension]('/tmp/evil.so')

-- refused: extensions, in other quotes and capitals
SELECT `LOAD_EXTENSION` ('/tmp/evil.so')

-- refused: extensions, with a comment before the bracket
SELECT load_extension/**/('/tmp/evil.so')

-- refused: extensions in ORDER BY
SELECT * FROM customers ORDER BY load_extension(name)

-- refused: extensions in LIMIT
SELECT 1 LIMIT load_extension('x')

-- refused: extensions behind GLOB
SELECT name GLOB load_extension('x') FROM customers

-- refused: extensions behind MATCH
SELECT * FROM notes WHERE notes MATCH load_extension('x')

-- refused: extensions in a window
SELECT sum(id) OVER (ORDER BY load_extension('x')) FROM customers

-- refused: extensions in an argument of a table
SELECT * FROM json_each(load_extension('x'))

-- refused: extensions in VALUES
VALUES (load_extension('x'))

-- refused: files read
SELECT readfile('/etc/passwd')

-- refused: files written
SELECT writefile('/tmp/x', 'y')

-- refused: an editor
SELECT edit(name) FROM customers

-- refused: folders
SELECT * FROM fsdir('/')

-- refused: folders, without brackets
SELECT * FROM fsdir

-- refused: pointers
SELECT fts3_tokenizer('simple', x'0000000000000000')

-- refused: SQL as text
SELECT eval('DROP TABLE customers')

-- refused: the error log
SELECT sqlite_log(1, 'x')

-- refused: the paths of the files
SELECT * FROM pragma_database_list

-- refused: the paths of the files, called
SELECT file FROM pragma_database_list()

-- refused: settings as tables
SELECT * FROM pragma_journal_mode

-- refused: settings as tables, quoted
SELECT * FROM main."PRAGMA_encoding"

-- refused: work without end
SELECT * FROM pragma_integrity_check(100)

-- refused: raw pages
SELECT data FROM sqlite_dbpage WHERE pgno = 1

-- refused: statements of others
SELECT sql FROM sqlite_stmt

-- refused: a name in single quotes
SELECT * FROM 'customers'

-- refused: placeholders with names
SELECT * FROM customers WHERE name = :name

-- refused: likewise
SELECT * FROM customers WHERE name = @name

-- refused: likewise
SELECT * FROM customers WHERE name = $name

-- refused: a client's command
.shell touch /tmp/owned

-- refused: an import
.import /etc/passwd customers

-- refused: table functions that are not known
SELECT * FROM evil_rows(1)

-- harmless: a view
SELECT * FROM evil_view

-- harmless: comments do not reach the database
SELECT 1 -- ; DROP TABLE customers

-- harmless: escapes that are none here
SELECT 'a\'; -- '

-- harmless: a column that is not there; were it in double quotes, SQLite would answer with its name
SELECT name FROM customers WHERE "no such column" = 'no such column'

-- harmless: the schema, as far as the authorizer lets it be seen
SELECT sql FROM sqlite_schema

-- harmless: a great blob, which the connection's limits end
SELECT length(zeroblob(100000000))

-- harmless: rows without end, which the deadline ends
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000) SELECT count(*) FROM n
