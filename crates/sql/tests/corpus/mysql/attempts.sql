-- refused: version comments are SQL for the server
SELECT 1 /*! UNION SELECT 2 */

-- refused: with a version
SELECT 1 /*!50000 UNION SELECT authentication_string FROM mysql.user */

-- refused: of MariaDB only
SELECT 1 /*M! UNION SELECT 2 */

-- refused: of MariaDB only, with a version
SELECT 1 /*M!100100 UNION SELECT 2 */

-- refused: inside of a list
SELECT /*!80000 SLEEP(5), */ 1

-- refused: hidden behind another comment
SELECT 1 /* */ /*!*/

-- refused: writes a file
SELECT * FROM customers INTO OUTFILE '/tmp/x'

-- refused: the clause before FROM
SELECT * INTO OUTFILE '/tmp/x' FROM customers

-- refused: writes a file
SELECT 0x41 INTO DUMPFILE '/tmp/x'

-- refused: sets a variable
SELECT name INTO @x FROM customers

-- refused: sets a variable
SELECT @x := 1

-- refused: variables of the session
SELECT @x

-- refused: variables with quotation marks
SELECT @`x`, @'x', @"x"

-- refused: variables of the server
SELECT @@version, @@global.datadir

-- refused: without a blank
SELECT 1 <@x

-- refused: reads a file
SELECT LOAD_FILE('/etc/passwd')

-- refused: between quotation marks
SELECT `load_file`('/etc/passwd')

-- refused: with a comment between
SELECT load_file /**/ ('/etc/passwd')

-- refused: waits
SELECT SLEEP(5)

-- refused: waits for each row
SELECT name FROM customers WHERE SLEEP(1) = 0

-- refused: waits in a subquery
SELECT (SELECT sleep(5))

-- refused: wastes time
SELECT BENCHMARK(100000000, MD5('a'))

-- refused: locks
SELECT GET_LOCK('a', 10)

-- refused: unlocks
SELECT RELEASE_ALL_LOCKS()

-- refused: waits for a replica
SELECT MASTER_POS_WAIT('a', 1)

-- refused: keeps a value in the session
SELECT LAST_INSERT_ID(5)

-- refused: the session has had other callers
SELECT FOUND_ROWS()

-- refused: changes a sequence
SELECT NEXTVAL(s)

-- refused: changes a sequence
SELECT NEXT VALUE FOR s

-- refused: runs commands, where it is installed
SELECT sys_exec('id')

-- refused: functions of the schema sys
SELECT sys.format_path('/a')

-- refused: locks rows
SELECT * FROM customers FOR UPDATE

-- refused: locks rows
SELECT * FROM customers FOR UPDATE SKIP LOCKED

-- refused: locks rows
SELECT * FROM customers FOR SHARE

-- refused: locks rows, the older form
SELECT * FROM customers LOCK IN SHARE MODE

-- refused: locks rows in a subquery
SELECT * FROM (SELECT * FROM customers FOR UPDATE) AS t

-- refused: two statements
SELECT 1; SELECT 2

-- refused: two statements
SELECT 1; DROP TABLE customers

-- refused: writes
INSERT INTO customers VALUES (1)

-- refused: writes
REPLACE INTO customers VALUES (1)

-- refused: writes
UPDATE customers SET name = 'x'

-- refused: writes
DELETE FROM customers

-- refused: writes
TRUNCATE TABLE customers

-- refused: changes the schema
DROP TABLE customers

-- refused: changes the schema
CREATE TABLE t AS SELECT 1

-- refused: changes rights
GRANT ALL ON *.* TO 'a'@'%'

-- refused: changes the session
SET @x = 1

-- refused: changes the server
SET GLOBAL general_log = 1

-- refused: may write
CALL refund(1)

-- refused: runs functions
DO SLEEP(1)

-- refused: reads around transactions
HANDLER customers OPEN

-- refused: reads a file
LOAD DATA INFILE '/etc/passwd' INTO TABLE customers

-- refused: locks
LOCK TABLES customers WRITE

-- refused: ends the sessions of others
KILL 1

-- refused: has a tool of its own
SHOW PROCESSLIST

-- refused: SQL as text
PREPARE s FROM 'DROP TABLE customers'

-- refused: a transaction of another kind
XA BEGIN 'a'

-- refused: changes the session
USE mysql

-- refused: has a tool of its own
EXPLAIN SELECT 1

-- refused: hashes of passwords
SELECT * FROM mysql.user

-- refused: in another case
SELECT * FROM MySQL.`User`

-- refused: behind a common table expression
WITH x AS (SELECT 1) SELECT * FROM x, mysql.global_priv

-- refused: statements of others
SELECT * FROM information_schema.processlist

-- refused: in another case
SELECT info FROM INFORMATION_SCHEMA.PROCESSLIST

-- refused: statements of others
SELECT * FROM performance_schema.events_statements_current

-- refused: statements of others
SELECT * FROM sys.session

-- refused: samples of rows
SELECT * FROM information_schema.column_statistics

-- refused: an old clause that calls a procedure
SELECT name FROM customers PROCEDURE ANALYSE()

-- refused: a name for the server, a number and an alias for others
SELECT 2fa FROM customers

-- refused: NULL for the server
SELECT \N

-- refused: strings in another character set
SELECT N'a'

-- refused: a string for the server, a name for others
SELECT * FROM 'customers'

-- harmless: only text
SELECT 'SLEEP(5)', "INTO OUTFILE '/tmp/x'", '/*! UNION SELECT 2 */'

-- harmless: comments are left out
SELECT 1 /* SLEEP(5) */ -- INTO OUTFILE '/tmp/x'

-- harmless: hints for the optimizer are left out, also those that set variables
SELECT /*+ SET_VAR(sql_mode = 'ANSI_QUOTES') */ 1

-- harmless: an escaped quotation mark
SELECT '\'; DROP TABLE customers; -- '

-- harmless: an escaped backslash
SELECT '\\', 'a'

-- harmless: two quotation marks in a name
SELECT `a``; DROP TABLE customers; -- ` FROM customers

-- harmless: no comment without a blank
SELECT 3--1

-- harmless: names of refused functions
SELECT sleep, `into` FROM customers AS benchmark
