-- Which name is meant, which type two types become, and where clauses may stand.

-- GROUP BY takes a column of the input before an alias, ORDER BY an alias before a column of the input
SELECT carrier AS origin, count(*) AS n FROM flights WHERE carrier IN ('AA', 'UA') GROUP BY carrier ORDER BY origin;
SELECT month % 3 AS month, count(*) AS n FROM flights GROUP BY month ORDER BY 1, 2 LIMIT 5;
SELECT dept AS name, count(*) AS n FROM employees GROUP BY dept ORDER BY name;
SELECT -salary AS salary FROM employees WHERE id < 6 ORDER BY salary;
SELECT -salary AS salary FROM employees AS e WHERE id < 6 ORDER BY e.salary;
SELECT id AS a, salary AS b FROM employees WHERE id < 6 ORDER BY -id;
SELECT upper(name) AS name, count(*) FROM airlines GROUP BY airlines.name ORDER BY name LIMIT 3;
-- fails
SELECT salary AS pay FROM employees WHERE pay > 10;
-- fails
SELECT salary AS pay FROM employees ORDER BY pay + 1;
-- fails
SELECT count(*) AS n FROM employees GROUP BY dept HAVING n > 1;
SELECT e.dept, x.dept AS other FROM employees AS e, (SELECT 'none' AS dept) AS x WHERE e.id = 1;
SELECT id, (SELECT count(*) FROM orders AS o WHERE o.customer_id = id) AS orders FROM employees WHERE id < 4
ORDER BY id;
SELECT name FROM airlines WHERE carrier IN (SELECT carrier FROM planes WHERE tailnum = 'N102UW') ORDER BY name LIMIT 3;
-- fails
SELECT "Name" FROM airlines;
-- fails
SELECT flights.origin FROM flights AS f;
WITH flights AS (SELECT origin FROM flights WHERE month = 1) SELECT count(*) FROM flights;
SELECT x FROM (SELECT 1 AS x) AS a (x) WHERE EXISTS (SELECT x FROM (VALUES (2)) AS b (y) WHERE y > x);
SELECT a.n FROM (SELECT count(*) AS n FROM airlines) AS a CROSS JOIN (SELECT max(id) AS n FROM employees) AS b
WHERE b.n > a.n;
SELECT t.* FROM airlines AS t (code, title) WHERE t.code < 'B' ORDER BY t.code;
SELECT code, name FROM airlines AS t (code) WHERE code = 'AA';

-- whole rows
SELECT count(a), count(a.*), count(DISTINCT a) FROM airlines AS a;
SELECT a FROM airlines AS a WHERE carrier IN ('AA', 'DL') ORDER BY carrier;
SELECT c.customer_id, o IS NULL AS no_order FROM (VALUES (1), (999)) AS c (customer_id)
LEFT JOIN LATERAL (SELECT order_id FROM orders WHERE orders.customer_id = c.customer_id ORDER BY order_id
  LIMIT 1) AS o ON true ORDER BY 1;
SELECT (ROW(1, 'x'::text)).f1 AS first, (ROW(1, 'x'::text)).f2 AS second;

-- types that meet
SELECT 1 AS n UNION ALL SELECT 2.50 UNION ALL SELECT NULL ORDER BY n;
SELECT 1::smallint AS n UNION ALL SELECT 3000000000 ORDER BY n;
SELECT date '2023-01-01' AS d UNION ALL SELECT timestamp '2023-01-01 12:00' ORDER BY d;
SELECT NULL AS x UNION ALL SELECT 'text' ORDER BY x;
SELECT x, pg_typeof(x) AS type FROM (VALUES (1), (2.5), (NULL)) AS v (x) ORDER BY x;
SELECT pg_typeof(1 + 1.5) AS a, pg_typeof(1 + 1::bigint) AS b, pg_typeof(1.5 + 1::float8) AS c, pg_typeof(1 / 2) AS d,
  pg_typeof(sum(1)) AS e,
  pg_typeof(sum(1::bigint)) AS f, pg_typeof(avg(1)) AS g, pg_typeof(count(*)) AS h, pg_typeof(sum(1.5::real)) AS i;
SELECT pg_typeof(date '2023-01-02' - date '2023-01-01') AS a, pg_typeof(date '2023-01-02' + interval '1 day') AS b,
  pg_typeof(date '2023-01-02' + 1) AS c,
  pg_typeof(timestamp '2023-01-02' - timestamp '2023-01-01') AS d, pg_typeof(extract(year FROM date '2023-01-02')) AS e;
SELECT 7 / 2 AS int_division, -7 / 2 AS toward_zero, 7 / 2.0 AS exact, 7 % 3 AS rest, -7 % 3 AS negative_rest,
  7.5 % 2 AS numeric_rest;
SELECT 1 = 1.0 AS a, 1 = '1' AS b, '2023-01-01' = date '2023-01-01' AS c, 1::bigint = 1::smallint AS d,
  0.1::float8 = 0.1 AS e, 'a'::char(3) = 'a' AS f;
SELECT CASE WHEN true THEN 1 ELSE 2.5 END AS a, coalesce(NULL, 1, 2.5) AS b, greatest(1, 2.5) AS c,
  coalesce(date '2023-01-01', timestamp '2023-01-01 10:00') AS d;
SELECT * FROM (VALUES (1, 'a', NULL), (2.5, NULL, 3)) AS v (n, t, i) ORDER BY n;
-- fails
SELECT 1 = 'one';
-- fails
SELECT CASE WHEN true THEN 1 ELSE 'x' END;
-- fails
SELECT coalesce(1, date '2023-01-01');
-- fails
SELECT 'a' + 1;
-- fails
SELECT id FROM employees WHERE name = 1;
SELECT id FROM employees WHERE id = '7' OR salary > '74000' ORDER BY id;
SELECT count(*) FROM orders WHERE order_date > '2023-06-30' AND unit_price < 100.5 AND quantity IN (1, 2, 3);

-- where clauses may stand
SELECT count(*) FROM flights HAVING count(*) > 1;
SELECT 'x' AS constant FROM flights HAVING count(*) > 1;
SELECT 1 WHERE true;
SELECT 1 AS nothing WHERE false;
SELECT origin FROM flights GROUP BY origin ORDER BY count(*) DESC, origin;
SELECT dept FROM employees GROUP BY dept ORDER BY max(salary) DESC, dept NULLS LAST;
SELECT id FROM employees ORDER BY (SELECT count(*) FROM employees AS r WHERE r.manager_id = employees.id) DESC, id
LIMIT 5;
SELECT carrier FROM airlines ORDER BY row_number() OVER (ORDER BY length(name) DESC, carrier) LIMIT 3;
SELECT DISTINCT dept, count(*) OVER (PARTITION BY dept) AS n FROM employees ORDER BY dept;
SELECT DISTINCT length(name) AS n FROM airlines ORDER BY n DESC LIMIT 4;
((SELECT 1 AS x)) UNION ALL (SELECT 2 ORDER BY 1 LIMIT 1) ORDER BY x;
(WITH a AS (SELECT 3 AS x) SELECT x FROM a) UNION ALL (SELECT 4 LIMIT 1) ORDER BY 1;
SELECT (WITH a AS (SELECT max(salary) AS m FROM employees) SELECT m FROM a) AS best;
WITH a AS (SELECT origin, count(*) AS n FROM flights GROUP BY origin) SELECT x.origin, y.origin FROM a AS x
JOIN a AS y ON x.n > y.n ORDER BY 1, 2;
WITH a AS (SELECT 1 AS x), b AS (WITH a AS (SELECT 2 AS x) SELECT x FROM a) SELECT a.x AS outer_x, b.x AS inner_x
FROM a, b;
WITH x AS (SELECT carrier FROM airlines WHERE carrier > 'V') TABLE x ORDER BY carrier;
SELECT n FROM (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3 ORDER BY n DESC LIMIT 2) AS t ORDER BY n;
SELECT count(*) AS n FROM airlines TABLESAMPLE BERNOULLI (100);
SELECT count(*) AS n FROM airlines TABLESAMPLE SYSTEM (0);
SELECT carrier FROM airlines TABLESAMPLE BERNOULLI (100) REPEATABLE (7) ORDER BY carrier LIMIT 2;
SELECT sum(DISTINCT salary) AS s, count(DISTINCT dept) AS d, avg(DISTINCT quantity)::numeric(6, 3) AS q FROM employees
CROSS JOIN (SELECT quantity FROM orders LIMIT 0) AS o;
SELECT sum(x) FILTER (WHERE x > 1) AS s, count(*) FILTER (WHERE x IS NULL) AS nulls,
  max(x) FILTER (WHERE false) AS none FROM (VALUES (1), (2), (NULL), (3)) AS v (x);
SELECT avg(x) AS a, sum(x) AS s, min(x) AS lo, max(x) AS hi, count(x) AS n FROM (SELECT NULL::int WHERE false) AS v (x);
SELECT t.id, n.id AS nums_id, t.si FROM t_types AS t JOIN nums AS n ON t.si IS NOT DISTINCT FROM n.s1 ORDER BY 1, 2;
SELECT a.id, b.id AS other FROM t_types AS a JOIN t_types AS b ON a.d = b.d AND a.id < b.id ORDER BY 1, 2;
SELECT count(*) FROM t_types AS a JOIN t_types AS b ON a.si = b.i AND a.bi = b.n;
SELECT id, i BETWEEN -100 AND 100 AS small, i NOT IN (0, 1, NULL) AS not_in, i IS NULL AS missing FROM t_types
WHERE id < 9 ORDER BY id;
SELECT b, count(*) AS n, bool_or(i > 0) AS some, min(da) AS first, max(ts) AS last FROM t_types GROUP BY b ORDER BY b;
SELECT id FROM t_types ORDER BY b DESC NULLS LAST, si NULLS FIRST, id LIMIT 10;
SELECT count(*) AS n, count(DISTINCT si) AS si, count(DISTINCT da) AS da, count(DISTINCT (b, si > 5)) AS pairs
FROM t_types;
