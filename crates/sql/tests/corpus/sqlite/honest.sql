-- Statements that must pass, and mean in our writing what they mean as they stand: one an entry, entries apart by an
-- empty line. Comment lines before a statement say what it shows. A comment that begins with "not understood:" marks
-- what the parser cannot read yet; a test holds that this is still so.
-- All run against schema.sql beside this file. Add yours anywhere.

SELECT 1

SELECT 1;

-- comments
SELECT /* one */ count(*) -- two
FROM orders

VALUES (1, 'one'), (2, NULL)

SELECT * FROM customers ORDER BY id

SELECT ID, Name FROM CUSTOMERS WHERE ID = 1

SELECT rowid, oid, _rowid_ FROM customers ORDER BY 1

-- names in every kind of quotes
SELECT "the.dot", [a/b], `back``tick`, "select" FROM "Odd Names"

SELECT [Odd Names].[select] AS [the select] FROM [Odd Names]

SELECT o."a/b" FROM `Odd Names` AS o

SELECT main.customers.name FROM main.customers ORDER BY id

SELECT name AS 'the name', city "the city" FROM customers ORDER BY "the city", 1

SELECT DISTINCT city FROM customers ORDER BY city NULLS LAST

SELECT * FROM customers ORDER BY id LIMIT 2 OFFSET 1

-- an offset, then a limit
SELECT id FROM customers ORDER BY id LIMIT 1, 2

SELECT id FROM customers ORDER BY id LIMIT -1

-- comparisons
SELECT name LIKE 'a%', name NOT LIKE '%x', name LIKE '10\%' ESCAPE '\', name GLOB 'A*', name NOT GLOB '*z' FROM customers ORDER BY id

SELECT * FROM orders WHERE note GLOB '*\*' AND id > 1 OR total = 42 ORDER BY id

SELECT city IS NULL, city IS NOT NULL, city ISNULL, city NOTNULL, city NOT NULL FROM customers ORDER BY id

SELECT city IS 'London', city IS NOT 'Paris', city IS email, credit IS NOT 0 AND active FROM customers ORDER BY id

SELECT city IS DISTINCT FROM 'London', city IS NOT DISTINCT FROM NULL FROM customers ORDER BY id

SELECT id = 1, id == 1, id != 1, id <> 1, id BETWEEN 2 AND 3, id IN (1, 2), id NOT IN (SELECT customer_id FROM orders) FROM customers ORDER BY id

-- row values
SELECT id FROM orders WHERE (customer_id, status) = (1, 'paid') OR (customer_id, id) IN (SELECT 2, 12) ORDER BY id

SELECT (1, 2) < (1, 3), (SELECT max(total) FROM orders), EXISTS (SELECT 1 FROM events)

SELECT 1 + 2 * 3, 7 / 2, 7 % 3, -5, - -5, +3, ~5, 5 & 3, 5 | 3, 1 << 4, 256 >> 2, 'a' || 'b' || 1, NOT 0, 1 AND 0 OR 1

SELECT 5%-2, 3<>-1, 2*-3, 1--1
+ 2, 0x1F, 1e3, .5, 5., x'C3A9', X'00'

-- text as it stands: backslashes are letters
SELECT 'it''s', 'C:\dir\', 'a\''b', '', '; DROP TABLE customers; --'

SELECT CASE WHEN total > 100 THEN 'big' ELSE 'small' END, CASE status WHEN 'open' THEN 1 ELSE 0 END, iif(total > 50, 'x', 'y'), coalesce(note, '-'), ifnull(note, '-'), nullif(note, '') FROM orders ORDER BY id

SELECT CAST(total AS INTEGER), CAST(id AS TEXT), typeof(total), CAST('1.5' AS REAL), CAST(name AS BLOB) FROM orders JOIN customers USING (id) ORDER BY 1

SELECT printf('%05.2f %s', total, status), format('%d', id), substr(status, 1, 2), substring(status, 2), upper(status), trim('  x '), replace(status, 'p', 'q'), instr(status, 'a'), hex(status), quote(note), unicode('a'), char(97, 98), length(note) FROM orders ORDER BY id

SELECT abs(-1), round(2.567, 2), max(1, 2, 3), min(1, 2), random() IS NOT NULL, length(randomblob(4)), zeroblob(2), likely(1), sign(-3), total(id) FROM orders

-- time
SELECT date(placed_at), time(placed_at), datetime(placed_at, '+1 day', 'start of month'), strftime('%Y-%m', placed_at), julianday('2024-01-01'), unixepoch('2024-01-01'), date(1704067200, 'unixepoch') FROM orders ORDER BY id

SELECT strftime('%Y-%m', placed_at) AS month, sum(total) FROM orders GROUP BY month HAVING sum(total) > 50 ORDER BY month

SELECT current_date IS NOT NULL, CURRENT_TIME IS NOT NULL, current_timestamp IS NOT NULL

-- aggregates
SELECT count(*), count(DISTINCT status), sum(total), total(total), avg(total), min(total), max(total), group_concat(status, ', '), count(*) FILTER (WHERE total > 50) FROM orders

SELECT status, count(*) FROM orders GROUP BY status HAVING count(*) > 1 ORDER BY 2 DESC

SELECT status, max(total), note FROM orders GROUP BY 1 ORDER BY 1 COLLATE NOCASE DESC

-- window functions
SELECT id, rank() OVER (ORDER BY total DESC), sum(total) OVER (PARTITION BY customer_id ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM orders ORDER BY id

SELECT id, lag(total, 1, 0) OVER w, ntile(2) OVER w, first_value(id) OVER w, percent_rank() OVER w FROM orders WINDOW w AS (ORDER BY id) ORDER BY id

SELECT id, avg(total) OVER (ORDER BY id RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), count(*) FILTER (WHERE total > 50) OVER (ORDER BY id GROUPS 1 PRECEDING) FROM orders ORDER BY id

-- not understood: a frame that leaves rows out
SELECT id, sum(total) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) FROM orders ORDER BY id

-- joins
SELECT c.name, o.id FROM customers c LEFT JOIN orders o ON o.customer_id = c.id ORDER BY 1, 2

SELECT * FROM customers c INNER JOIN orders o ON c.id = o.customer_id CROSS JOIN events e WHERE o.total > 100 ORDER BY c.id, e.id

SELECT * FROM (SELECT 1 AS a) NATURAL JOIN (SELECT 1 AS a, 2 AS b)

SELECT a.id, b.id FROM customers a, customers b WHERE a.id < b.id ORDER BY 1, 2

-- sets
SELECT id FROM customers UNION ALL SELECT id FROM orders ORDER BY 1 LIMIT 3

SELECT customer_id FROM orders INTERSECT SELECT id FROM customers EXCEPT SELECT 2 ORDER BY 1

-- common table expressions
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT sum(i) FROM n

-- not understood: MATERIALIZED
WITH big AS MATERIALIZED (SELECT * FROM orders WHERE total > 50), c (i, n) AS (SELECT id, name FROM customers) SELECT n, total FROM big JOIN c ON i = customer_id ORDER BY 2

WITH c (i, n) AS (SELECT id, name FROM customers) SELECT n, total FROM orders JOIN c ON i = customer_id ORDER BY 2

-- json
SELECT body ->> '$.user.name', body -> 'user', json_extract(body, '$.user.id'), json_array_length(body, '$.tags'), body->>'user'->>'x' FROM events ORDER BY id

SELECT e.id, t.value, t.key, t.fullkey FROM events e, json_each(e.body, '$.tags') t ORDER BY 1, 3

SELECT key, atom FROM events, json_tree(events.body) WHERE atom IS NOT NULL ORDER BY events.id, json_tree.id

SELECT json_object('a', 1, 'b', json_array(1, 2)), json_group_array(name), json_group_object(id, name), json_valid('{'), json_type('[]'), json('{"a" : 1}'), json_set('{}', '$.a', 1), json_patch('{}', '{"b":2}') FROM customers

-- full text
SELECT title, snippet(notes, 1, '[', ']', '…', 5), bm25(notes) < 0 FROM notes WHERE notes MATCH 'quick OR lazy' ORDER BY rank

SELECT title FROM notes WHERE body MATCH 'fox' AND title = 'first'

-- the catalog
SELECT name, type FROM sqlite_schema WHERE name NOT LIKE 'notes%' ORDER BY name

SELECT tbl_name FROM main.sqlite_master WHERE type = 'table' AND sql LIKE '%customers%' ORDER BY 1

SELECT name, type, pk FROM pragma_table_info('customers') ORDER BY cid

SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' AND m.name = 'orders' ORDER BY c.cid

SELECT name COLLATE BINARY < 'b' FROM customers ORDER BY id

-- not understood: indexes by name
SELECT * FROM customers NOT INDEXED WHERE id = 1

SELECT "delete", "insert" FROM (SELECT 1 AS "delete", 2 AS "insert")

-- needs: parameters
SELECT * FROM orders WHERE customer_id = ? AND total > ? LIMIT ?

-- needs: parameters
SELECT * FROM orders WHERE customer_id = $2 OR id = $1
