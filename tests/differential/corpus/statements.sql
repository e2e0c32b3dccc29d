-- Forms of statements: joins, subqueries, WITH, sets, order, CASE, names of columns.

-- joins
SELECT f.carrier, a.name, count(*) AS flights FROM flights AS f JOIN airlines AS a ON f.carrier = a.carrier
GROUP BY f.carrier, a.name ORDER BY flights DESC, f.carrier;
SELECT carrier, name, count(*) FROM flights JOIN airlines USING (carrier) WHERE month = 6 GROUP BY carrier, name
ORDER BY carrier;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) NATURAL JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y);
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y) USING (id);
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y) ON l.id = r.id;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) LEFT JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y) USING (id)
ORDER BY id;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) RIGHT JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y) USING (id)
ORDER BY id;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) FULL JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y) USING (id)
ORDER BY id;
SELECT id, l.id AS left_id, r.id AS right_id
FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING (id) ORDER BY id;
SELECT l.id, r.id FROM (VALUES (1), (NULL)) AS l (id) FULL OUTER JOIN (VALUES (1), (NULL)) AS r (id) ON l.id = r.id
ORDER BY l.id, r.id;
SELECT * FROM (VALUES (1), (2)) AS l (a) CROSS JOIN (VALUES ('x'), ('y')) AS r (b) ORDER BY a, b;
SELECT l.a, r.a FROM (VALUES (1), (2), (3)) AS l (a), (VALUES (1), (2), (3)) AS r (a) WHERE l.a < r.a ORDER BY 1, 2;
SELECT * FROM (VALUES (1, 2)) AS l (a, b) NATURAL JOIN (VALUES (3)) AS r (c);
SELECT * FROM (VALUES (1, 'x', 9)) AS l (a, b, c) JOIN (VALUES (1, 'x', 8)) AS r (a, b, d) USING (b, a);
SELECT j.id, j.y FROM ((VALUES (1, 'a'), (2, 'b')) AS l (id, x) JOIN (VALUES (2, 'c')) AS r (id, y) USING (id)) AS j;
SELECT e.name AS employee, m.name AS manager FROM employees AS e LEFT JOIN employees AS m ON m.id = e.manager_id
ORDER BY e.id LIMIT 8;
SELECT o.order_id, c.name, p.sku FROM orders AS o JOIN customers AS c ON c.customer_id = o.customer_id
JOIN products AS p ON p.product_id = o.product_id WHERE o.order_date < date '2022-01-20' ORDER BY o.order_id;
SELECT count(*) AS orders, count(c.customer_id) AS with_customer, count(o.customer_id) AS with_key
FROM orders AS o LEFT JOIN customers AS c USING (customer_id);
SELECT o.status, count(*) FROM orders AS o
LEFT JOIN customers AS c ON c.customer_id = o.customer_id AND c.country = 'DE'
WHERE c.customer_id IS NULL GROUP BY o.status ORDER BY o.status;
SELECT f.origin, w.origin AS weather_origin, count(*) AS n FROM flights AS f
LEFT JOIN weather AS w ON w.origin = f.origin AND w.time_hour = f.time_hour GROUP BY f.origin, w.origin ORDER BY 1, 2;
SELECT a.id, b.id AS next_id FROM employees AS a
JOIN employees AS b ON b.salary = a.salary AND b.dept = a.dept AND b.id > a.id
ORDER BY a.id, b.id;
-- fails
SELECT carrier FROM flights JOIN airlines ON flights.carrier = airlines.carrier;
-- fails
SELECT * FROM airlines JOIN airports USING (carrier);

-- LATERAL
SELECT a.carrier, t.dest, t.n FROM airlines AS a CROSS JOIN LATERAL (
  SELECT dest, count(*) AS n FROM flights AS f WHERE f.carrier = a.carrier GROUP BY dest ORDER BY n DESC, dest
    LIMIT 1) AS t ORDER BY a.carrier;
SELECT d.dept, t.name, t.salary FROM (SELECT DISTINCT dept FROM employees WHERE dept IS NOT NULL) AS d,
LATERAL (SELECT name, salary FROM employees AS e WHERE e.dept = d.dept ORDER BY salary DESC NULLS LAST, id
  LIMIT 2) AS t ORDER BY 1, 3 DESC, 2;
SELECT c.customer_id, l.order_id FROM customers AS c LEFT JOIN LATERAL (
  SELECT order_id FROM orders AS o WHERE o.customer_id = c.customer_id ORDER BY order_date DESC, order_id DESC
    LIMIT 1) AS l ON true
WHERE c.customer_id <= 12 ORDER BY c.customer_id;
SELECT g, s.total FROM generate_series(1, 4) AS g,
LATERAL (SELECT sum(x) AS total FROM generate_series(1, g) AS x) AS s ORDER BY g;
SELECT v.a, d.doubled, q.squared FROM (VALUES (2), (3)) AS v (a), LATERAL (SELECT a * 2 AS doubled) AS d,
LATERAL (SELECT doubled ^ 2 AS squared) AS q ORDER BY 1;

-- subqueries
SELECT name FROM airlines WHERE carrier = (SELECT carrier FROM flights GROUP BY carrier ORDER BY count(*) DESC, carrier
  LIMIT 1);
SELECT (SELECT count(*) FROM airlines) AS airlines, (SELECT max(distance) FROM flights) AS farthest,
  (SELECT 1 WHERE false) AS nothing;
SELECT carrier, (SELECT count(*) FROM flights AS f WHERE f.carrier = a.carrier) AS flights FROM airlines AS a
ORDER BY 2 DESC, 1;
SELECT e.name, e.salary FROM employees AS e
WHERE e.salary > (SELECT avg(x.salary) FROM employees AS x WHERE x.dept = e.dept) ORDER BY e.id;
SELECT c.customer_id, (SELECT sum(o.quantity * o.unit_price) FROM orders AS o
  WHERE o.customer_id = c.customer_id) AS spent
FROM customers AS c WHERE c.country = 'JP' ORDER BY c.customer_id;
SELECT d.dept, (SELECT count(*) FROM employees AS e WHERE e.dept = d.dept
  AND e.salary > (SELECT avg(s.salary) FROM employees AS s WHERE s.dept = d.dept)) AS above_average
FROM (SELECT DISTINCT dept FROM employees WHERE dept IS NOT NULL) AS d ORDER BY d.dept;
SELECT e.id FROM employees AS e WHERE EXISTS (SELECT 1 FROM employees AS r WHERE r.manager_id = e.id
  AND EXISTS (SELECT 1 FROM employees AS s WHERE s.manager_id = r.id AND s.dept = e.dept)) ORDER BY e.id;
SELECT carrier, EXISTS (SELECT 1 FROM flights AS f WHERE f.carrier = a.carrier AND f.dest = 'HNL') AS flies_to_hawaii
FROM airlines AS a ORDER BY carrier;
SELECT customer_id FROM customers AS c WHERE NOT EXISTS (SELECT FROM orders AS o
  WHERE o.customer_id = c.customer_id AND o.status <> 'returned')
ORDER BY customer_id LIMIT 20;
SELECT name FROM airlines WHERE carrier IN (SELECT carrier FROM flights WHERE origin = 'JFK' AND month = 12)
ORDER BY carrier;
SELECT count(*) FROM flights WHERE tailnum NOT IN (SELECT tailnum FROM planes);
SELECT count(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders WHERE quantity > 10);
SELECT count(*) FROM customers WHERE customer_id NOT IN (SELECT customer_id FROM orders
  WHERE quantity > 10 AND customer_id IS NOT NULL);
SELECT 1 IN (1, NULL) AS a, 2 IN (1, NULL) AS b, 1 NOT IN (1, NULL) AS c, 2 NOT IN (1, NULL) AS d, NULL IN (1) AS e,
  NULL NOT IN (1) AS f;
SELECT NULL IN (SELECT 1 WHERE false) AS a, NULL NOT IN (SELECT 1 WHERE false) AS b, 1 IN (SELECT NULL::int) AS c;
SELECT carrier FROM airlines WHERE carrier IN (VALUES ('UA'), ('DL'), ('ZZ')) ORDER BY carrier;
SELECT order_id FROM orders WHERE (customer_id, status) IN (SELECT customer_id, status FROM orders GROUP BY 1, 2
  HAVING count(*) > 1)
ORDER BY order_id LIMIT 10;
SELECT id FROM employees WHERE salary >= ALL (SELECT salary FROM employees WHERE salary IS NOT NULL) ORDER BY id;
SELECT id FROM employees WHERE salary < ANY (SELECT salary FROM employees WHERE dept IS NULL) ORDER BY id;
SELECT 5 > ALL (SELECT 1 WHERE false) AS all_of_none, 5 > ANY (SELECT 1 WHERE false) AS any_of_none,
  1 = ALL (SELECT NULL::int) AS of_null;
SELECT t.origin, t.n FROM (SELECT origin, count(*) AS n FROM flights GROUP BY origin) AS t
WHERE t.n > (SELECT count(*) / 3.2 FROM flights) ORDER BY t.n DESC;
SELECT month, count(*) AS n FROM flights GROUP BY month HAVING count(*) > (SELECT count(*) / 12 FROM flights)
ORDER BY month;
-- fails
SELECT (SELECT carrier FROM airlines);
-- fails
SELECT (SELECT carrier, name FROM airlines LIMIT 1);
SELECT ARRAY(SELECT dest FROM flights AS f WHERE f.carrier = a.carrier GROUP BY dest ORDER BY count(*) DESC, dest
  LIMIT 2) AS top
FROM airlines AS a WHERE carrier IN ('AA', 'B6', 'WN') ORDER BY carrier;
SELECT o.order_id, o.quantity FROM orders AS o WHERE o.quantity * o.unit_price = (
  SELECT max(x.quantity * x.unit_price) FROM orders AS x WHERE x.status = o.status) ORDER BY o.status, o.order_id;

-- row comparisons
SELECT (1, 2) = (1, 2) AS a, (1, 2) < (1, 3) AS b, (2, 1) > (1, 9) AS c, (1, NULL) = (1, NULL) AS d,
  (1, NULL) = (2, NULL) AS e, (1, 2) <> (1, 3) AS f;
SELECT ROW(1, 'a') = ROW(1, 'a') AS same, ROW(1, NULL) IS NULL AS partly_null, ROW(NULL, NULL) IS NULL AS all_null,
  ROW(1, NULL) IS NOT NULL AS not_null;
SELECT month, day, count(*) FROM flights WHERE (month, day) >= (12, 28) GROUP BY month, day ORDER BY month, day;
SELECT order_id FROM orders WHERE (order_date, order_id) > (date '2023-12-20', 100000) ORDER BY order_date, order_id
LIMIT 6;
SELECT (1, 2) IN ((1, 2), (3, 4)) AS a, (1, NULL) IN ((1, 2)) AS b, (1, 2) NOT IN ((3, 4)) AS c;
SELECT carrier, origin, count(*) FROM flights WHERE (carrier, origin) IN (('AA', 'JFK'), ('UA', 'EWR'), ('DL', 'LGA'))
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT ROW(1, 2) IS DISTINCT FROM ROW(1, NULL) AS a, (1, 'x') IS NOT DISTINCT FROM (1, 'x') AS b;

-- WITH
WITH busy AS (SELECT dest, count(*) AS n FROM flights GROUP BY dest) SELECT dest, n FROM busy WHERE n > 250
ORDER BY n DESC, dest;
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a), c (y) AS (SELECT x * 10 FROM b) SELECT a.x, b.x, y
FROM a, b, c;
WITH t AS MATERIALIZED (SELECT carrier, avg(arr_delay) AS d FROM flights GROUP BY carrier),
  u AS NOT MATERIALIZED (SELECT * FROM t WHERE d > 0)
SELECT carrier, round(d, 1) AS delay FROM u ORDER BY d DESC, carrier;
WITH t (a, b) AS (VALUES (1, 'x'), (2, 'y')) SELECT t1.b, t2.a FROM t AS t1 JOIN t AS t2 ON t1.a <> t2.a ORDER BY 1;
WITH airlines AS (SELECT 'XX' AS carrier) SELECT * FROM airlines;
SELECT * FROM (WITH x AS (SELECT 5 AS n) SELECT n, n + 1 FROM x) AS inner_with;
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT sum(i) AS total, max(i) FROM n;
WITH RECURSIVE fib (a, b) AS (VALUES (0, 1) UNION ALL SELECT b, a + b FROM fib WHERE b < 100) SELECT a FROM fib
ORDER BY a, b;
WITH RECURSIVE tree AS (
  SELECT id, name, manager_id, 0 AS depth FROM employees WHERE manager_id IS NULL
  UNION ALL
  SELECT e.id, e.name, e.manager_id, t.depth + 1 FROM employees AS e JOIN tree AS t ON e.manager_id = t.id)
SELECT depth, count(*) AS employees FROM tree GROUP BY depth ORDER BY depth;
WITH RECURSIVE reach (id) AS (SELECT 1 UNION SELECT (id * 2) % 7 FROM reach) SELECT id FROM reach ORDER BY id;
WITH RECURSIVE days (d) AS (SELECT date '2013-02-26' UNION ALL SELECT (d + interval '1 day')::date FROM days
  WHERE d < date '2013-03-02')
SELECT d, to_char(d, 'Dy') AS weekday FROM days ORDER BY d;
WITH RECURSIVE collatz (n, steps) AS (SELECT 27, 0
  UNION ALL SELECT CASE WHEN n % 2 = 0 THEN n / 2 ELSE 3 * n + 1 END, steps + 1 FROM collatz WHERE n > 1)
SELECT max(steps) AS steps, max(n) AS peak FROM collatz;

-- set operations
SELECT 1 AS n UNION SELECT 2 UNION SELECT 1 ORDER BY n;
SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 1 ORDER BY n DESC;
SELECT origin FROM flights INTERSECT SELECT faa FROM airports ORDER BY 1;
SELECT dest FROM flights EXCEPT SELECT faa FROM airports ORDER BY dest;
SELECT x FROM (VALUES (1), (1), (2), (3)) AS a (x) INTERSECT ALL SELECT x FROM (VALUES (1), (1), (1), (3)) AS b (x)
ORDER BY x;
SELECT x FROM (VALUES (1), (1), (1), (2), (3)) AS a (x) EXCEPT ALL SELECT x FROM (VALUES (1), (3)) AS b (x) ORDER BY x;
SELECT x FROM (VALUES (1), (1), (NULL), (NULL)) AS a (x) UNION SELECT NULL ORDER BY x NULLS FIRST;
SELECT NULL::int AS x INTERSECT SELECT NULL;
SELECT 1 AS a UNION SELECT 2.5 ORDER BY a;
SELECT 'a' AS first_name UNION ALL SELECT 'b' AS other_name ORDER BY first_name;
(SELECT carrier FROM airlines ORDER BY carrier LIMIT 2)
UNION ALL (SELECT carrier FROM airlines ORDER BY carrier DESC LIMIT 2) ORDER BY 1;
SELECT 1 AS x UNION SELECT 2 INTERSECT SELECT 2 ORDER BY x;
(SELECT 1 AS x UNION SELECT 2) INTERSECT SELECT 2;
SELECT 1 AS x EXCEPT SELECT 1;
SELECT kind, n FROM (SELECT 'origin' AS kind, count(DISTINCT origin) AS n FROM flights
  UNION ALL SELECT 'dest', count(DISTINCT dest) FROM flights) AS u ORDER BY kind;
SELECT month AS period, count(*) AS n FROM flights WHERE month < 4 GROUP BY month UNION ALL SELECT NULL, count(*)
FROM flights WHERE month < 4 ORDER BY 1 NULLS LAST;
-- fails
SELECT 1, 2 UNION SELECT 1;
-- fails
SELECT 1 UNION SELECT 'x';

-- DISTINCT
SELECT DISTINCT origin FROM flights ORDER BY origin;
SELECT DISTINCT ON (origin) origin, dest, distance FROM flights ORDER BY origin, distance DESC, dest;
SELECT DISTINCT ON (dept) dept, name, salary FROM employees ORDER BY dept NULLS FIRST, salary DESC NULLS LAST, id;
SELECT DISTINCT ON (customer_id) customer_id, order_id, order_date FROM orders WHERE customer_id <= 10
ORDER BY customer_id, order_date DESC, order_id;
SELECT DISTINCT salary % 10000 = 0 AS round_salary, dept IS NULL AS no_dept FROM employees ORDER BY 1, 2;
SELECT count(DISTINCT (origin, dest)) AS routes, count(DISTINCT origin || dest) AS same FROM flights;
SELECT DISTINCT x FROM (VALUES (NULL), (1), (NULL)) AS v (x) ORDER BY x;
SELECT ALL origin FROM flights WHERE flight = 1545 ORDER BY origin LIMIT 3;
-- fails
SELECT DISTINCT origin FROM flights ORDER BY dest;

-- VALUES and TABLE
VALUES (1, 'one'), (2, 'two'), (3, NULL);
VALUES (3), (1), (2) ORDER BY column1 DESC LIMIT 2;
TABLE airlines ORDER BY carrier;
SELECT column1, column2 FROM (VALUES (1, 'x'), (2, 'y')) AS v ORDER BY column1;
SELECT * FROM (VALUES (1, 2.5), (2, 3)) AS v (i, n) ORDER BY i;
SELECT * FROM (TABLE airlines) AS t WHERE carrier < 'B' ORDER BY name;
SELECT v.* FROM (VALUES (1, NULL), (NULL, 'x')) AS v (a, b) ORDER BY a;

-- LIMIT, OFFSET, FETCH
SELECT carrier FROM airlines ORDER BY carrier FETCH FIRST 3 ROWS ONLY;
SELECT carrier FROM airlines ORDER BY carrier OFFSET 14;
SELECT carrier FROM airlines ORDER BY carrier OFFSET 2 ROWS FETCH NEXT ROW ONLY;
SELECT carrier FROM airlines ORDER BY carrier LIMIT 2 OFFSET 3;
SELECT carrier FROM airlines ORDER BY carrier LIMIT 0;
SELECT carrier FROM airlines ORDER BY carrier LIMIT ALL OFFSET 15;
SELECT id, salary FROM (SELECT id, salary FROM employees WHERE salary IS NOT NULL
  ORDER BY salary DESC FETCH FIRST 2 ROWS WITH TIES) AS t ORDER BY id;
SELECT carrier FROM airlines ORDER BY carrier LIMIT 1 + 1 OFFSET (SELECT 3);
SELECT carrier FROM airlines ORDER BY carrier LIMIT NULL OFFSET 15;
-- fails
SELECT carrier FROM airlines LIMIT -1;

-- ORDER BY
SELECT x FROM (VALUES (2), (NULL), (1)) AS v (x) ORDER BY x;
SELECT x FROM (VALUES (2), (NULL), (1)) AS v (x) ORDER BY x DESC;
SELECT x FROM (VALUES (2), (NULL), (1)) AS v (x) ORDER BY x NULLS FIRST;
SELECT x FROM (VALUES (2), (NULL), (1)) AS v (x) ORDER BY x DESC NULLS LAST;
SELECT origin, count(*) FROM flights GROUP BY origin ORDER BY 2 DESC;
SELECT carrier, length(name) FROM airlines ORDER BY length(name) DESC, carrier LIMIT 4;
SELECT -id AS id, name FROM employees ORDER BY id LIMIT 3;
SELECT id AS x, salary AS y FROM employees ORDER BY x DESC LIMIT 3;
SELECT name FROM employees ORDER BY salary NULLS FIRST, hired DESC LIMIT 5;
SELECT dept, count(*) AS n FROM employees GROUP BY dept ORDER BY count(*) DESC, dept NULLS LAST;
SELECT x FROM (VALUES ('NaN'::float8), (1), ('Infinity'), (NULL), ('-Infinity'), (0)) AS v (x) ORDER BY x;
SELECT b FROM (VALUES (true), (false), (NULL)) AS v (b) ORDER BY b DESC;
SELECT x FROM (VALUES (3), (1), (2)) AS v (x) ORDER BY x USING >;
SELECT carrier FROM airlines ORDER BY CASE carrier WHEN 'UA' THEN 0 WHEN 'DL' THEN 1 ELSE 2 END, carrier LIMIT 4;
-- fails
SELECT carrier FROM airlines ORDER BY 2;

-- CASE, COALESCE and friends
SELECT CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' ELSE 'c' END AS searched,
  CASE 3 WHEN 1 THEN 'one' WHEN 3 THEN 'three' END AS simple,
       CASE WHEN false THEN 1 END AS no_else, CASE NULL WHEN NULL THEN 'eq' ELSE 'ne' END AS of_null;
SELECT CASE WHEN true THEN 1 ELSE 2.5 END AS widened, CASE WHEN NULL THEN 'yes' ELSE 'no' END AS null_is_not_true;
SELECT CASE WHEN dep_delay IS NULL THEN 'cancelled' WHEN dep_delay <= 0 THEN 'on time'
  WHEN dep_delay < 60 THEN 'late' ELSE 'very late' END AS class,
       count(*) AS n FROM flights GROUP BY 1 ORDER BY n DESC;
SELECT CASE WHEN x = 0 THEN 0 ELSE 10 / x END AS guarded FROM (VALUES (0), (3)) AS v (x) ORDER BY x;
SELECT sum(CASE origin WHEN 'JFK' THEN 1 ELSE 0 END) AS jfk,
  sum(CASE WHEN origin = 'LGA' THEN distance END) AS lga_miles FROM flights WHERE day = 4;
SELECT coalesce(NULL, NULL, 3) AS a, coalesce(NULL, 'x') AS b, coalesce(NULL::int, 2.5) AS c, nullif(1, 1) AS d,
  nullif(1, 2) AS e, nullif('a', NULL) AS f;
SELECT coalesce(1, 2), nullif(3, 3), greatest(1, 2.5, NULL), least(3, NULL, 2), greatest(NULL, NULL);
SELECT greatest(date '2013-01-01', date '2012-12-31') AS d, least('b', 'a') AS t, greatest(ARRAY[1, 2], ARRAY[2]) AS a,
  least(true, false) AS b;
SELECT dept, coalesce(dept, 'none') AS shown, coalesce(salary, 0) AS salary FROM employees WHERE id >= 36 ORDER BY id;
SELECT order_id, quantity * unit_price * (1 - coalesce(discount, 0)) AS total FROM orders ORDER BY order_id LIMIT 5;

-- names of columns
SELECT 1, 1, 1 + 1, 1 + 1;
SELECT carrier, carrier, name AS carrier FROM airlines WHERE carrier = 'AA';
SELECT count(*), count(*), count(1), sum(distance), sum(distance) FROM flights;
SELECT 1 AS a, 2 AS a, 3 AS "A";
SELECT carrier AS "Carrier Code", name AS "The Name" FROM airlines ORDER BY "Carrier Code" LIMIT 1;
SELECT "a"."carrier" FROM "airlines" AS "a" WHERE "a"."name" LIKE 'Virgin%';
SELECT A.CARRIER, Name FROM Airlines A WHERE CARRIER = 'HA';
SELECT 1 "with space", 2 both_words, 3 AS "select", 4 AS "ünï", 5 AS "1st";
SELECT x.*, x.a + 1 AS a FROM (SELECT 1 AS a, 2 AS b) AS x;
SELECT *, name FROM airlines WHERE carrier = 'DL';
SELECT airlines.*, airlines.carrier FROM airlines WHERE carrier = 'UA';
SELECT upper('a'), 'x'::text, 1::bigint, now() IS NULL, -1, NOT true, (1), 'a' || 'b', NULL;
SELECT max(x), min(x) AS "min", sum(x) + 1, coalesce(max(x), 0), max(x)::text FROM (VALUES (1), (2)) AS v (x);
SELECT CASE WHEN true THEN 1 END, CASE WHEN true THEN 1 ELSE dep END FROM (VALUES (2)) AS v (dep);
SELECT extract(year FROM date '2013-05-06'), date_part('month', date '2013-05-06'), date '2013-05-06',
  interval '1 day', true;
SELECT (SELECT 5 AS five), (SELECT max(id) FROM employees), EXISTS (SELECT 1), ARRAY[1], ARRAY(SELECT 1);
-- refused: rows as columns
SELECT ROW(1);
SELECT a.carrier, f.carrier FROM airlines AS a
JOIN (SELECT DISTINCT carrier FROM flights) AS f ON f.carrier = a.carrier WHERE a.carrier = 'WN';
SELECT count(*) AS "count", avg(x), x_sum FROM (SELECT 1 AS x, 2 AS x_sum) AS t GROUP BY x_sum;

-- schemas
SELECT count(*) FROM public.flights WHERE public.flights.month = 1;
SELECT flights.origin, public.flights.dest FROM public.flights WHERE flights.distance > 4900 ORDER BY 1, 2 LIMIT 2;
SELECT a.name FROM public.airlines AS a WHERE a.carrier = 'F9';
SELECT "public"."airlines"."name" FROM "public"."airlines" WHERE "public"."airlines"."carrier" = 'OO';

-- NULL and boolean logic
SELECT NULL IS NULL AS a, NULL = NULL AS b, NULL <> 1 AS c, NOT NULL AS d, NULL AND false AS e, NULL AND true AS f,
  NULL OR true AS g, NULL OR false AS h;
SELECT a, b, a AND b AS both_true, a OR b AS either, NOT a AS negated, a = b AS same
FROM (VALUES (true), (false), (NULL)) AS x (a), (VALUES (true), (false), (NULL)) AS y (b)
ORDER BY a NULLS LAST, b NULLS LAST;
SELECT a, a IS TRUE AS t, a IS NOT TRUE AS nt, a IS FALSE AS f, a IS NOT FALSE AS nf, a IS UNKNOWN AS u,
  a IS NOT UNKNOWN AS nu
FROM (VALUES (true), (false), (NULL)) AS v (a) ORDER BY a;
SELECT 1 IS DISTINCT FROM 2 AS a, 1 IS DISTINCT FROM NULL AS b, NULL IS DISTINCT FROM NULL AS c,
  NULL IS NOT DISTINCT FROM NULL AS d;
SELECT count(*) FROM flights WHERE dep_delay IS DISTINCT FROM arr_delay;
SELECT a, b, c, a IS DISTINCT FROM b AND c AS conjunction, c OR a IS NOT DISTINCT FROM b AND c AS disjunction,
  NOT a IS DISTINCT FROM b OR c AS negation, a IS DISTINCT FROM b = c AS comparison
FROM (VALUES (true), (false), (NULL)) AS x(a), (VALUES (true), (false), (NULL)) AS y(b), (VALUES (true), (false), (NULL)) AS z(c)
ORDER BY 1, 2, 3;
SELECT count(*) FROM flights WHERE dep_delay IS DISTINCT FROM 0 AND arr_delay < 0;
SELECT n, n IN (7, 8, 9, 10, 11, CASE WHEN n > 3 THEN 1 END) AS a, 2 IN (5, CASE WHEN n > 1 THEN 2 ELSE 7 END) AS b,
  3 NOT IN (5, CASE WHEN n > 1 THEN -3 END) AS c, n IN (5, n - 1, CASE n WHEN 2 THEN 2 END) AS d,
  'a' IN ('b', CASE WHEN n < 3 THEN 'a' END) AS e, n BETWEEN SYMMETRIC @ -3 AND + 1 AS f
FROM (VALUES (1), (2), (3), (4), (NULL)) AS v (n) ORDER BY n;
SELECT n FROM (VALUES (1), (2), (3), (4)) AS v (n) WHERE n IN (7, 8, 9, 10, 11, CASE WHEN n > 3 THEN 1 END) OR n = 2;
SELECT dest, count(*) FROM flights WHERE dest IN ('BOS', CASE WHEN dep_delay > 60 THEN 'LAX' END) GROUP BY dest ORDER BY dest;
SELECT ~ n + 1 AS complement, @ n - 3 * 2 AS absolute, 10 - @ n - 3 AS difference, (|/ 4 + n * n)::numeric(12, 6) AS root,
  ~ n + 1 & 6 AS bits, -n ^ 2 AS square, @ n - 3 > 2 AS greater FROM (VALUES (-4), (2), (7)) AS v (n) ORDER BY n;
SELECT count(*) AS n, count(dep_time) AS departed, count(*) - count(dep_time) AS cancelled, sum(NULL::int) AS nothing
FROM flights;
SELECT 5 BETWEEN 1 AND 10 AS a, 5 BETWEEN 10 AND 1 AS b, 5 BETWEEN SYMMETRIC 10 AND 1 AS c, 5 NOT BETWEEN 1 AND 3 AS d,
  NULL BETWEEN 1 AND 2 AS e,
       5 BETWEEN 6 AND NULL AS f, 5 NOT BETWEEN SYMMETRIC 7 AND 3 AS g;
SELECT 1 < 2 AND 2 < 3 OR false AS precedence, NOT false AND false AS not_first, 2 + 3 * 4 % 5 AS numbers,
  -2 ^ 2 AS power, 'a' = 'a' IS TRUE AS chained;
SELECT id, salary > 50000 AS high FROM employees WHERE (salary > 50000) IS NOT TRUE AND dept = 'Sales' ORDER BY id;
SELECT count(*) FILTER (WHERE salary > 50000) AS high, count(*) FILTER (WHERE NOT salary > 50000) AS not_high,
  count(*) AS total FROM employees;
SELECT bool_and(x) AS every_one, bool_or(x) AS some, every(x) AS e FROM (VALUES (true), (NULL), (false)) AS v (x);
SELECT NULL ISNULL AS is_null, 1 NOTNULL AS not_null, 1 ISNULL, NULL NOTNULL;

-- functions in FROM
SELECT * FROM generate_series(1, 5);
SELECT * FROM generate_series(10, 1, -4) AS n;
SELECT g AS n, g * g AS square FROM generate_series(2, 8, 3) AS g;
SELECT d::date AS day FROM generate_series(timestamp '2013-01-30', '2013-02-02', interval '1 day') AS d ORDER BY d;
SELECT n FROM generate_series(1.0, 2.0, 0.25) AS n ORDER BY n;
SELECT * FROM generate_series(1, 0);
SELECT * FROM generate_series(5, 7) WITH ORDINALITY AS t (value, position) ORDER BY position DESC;
SELECT * FROM ROWS FROM (generate_series(1, 3), generate_series(10, 11)) AS t (a, b);
SELECT * FROM ROWS FROM (unnest(ARRAY['x', 'y']), generate_series(1, 3)) WITH ORDINALITY AS t (letter, number, n);
SELECT m.month, count(f.flight) AS n FROM generate_series(1, 12) AS m (month)
LEFT JOIN flights AS f ON f.month = m.month AND f.dest = 'SAN' AND f.origin = 'EWR' GROUP BY m.month ORDER BY m.month;
SELECT * FROM abs(-5) AS a, upper('x') AS u;
SELECT generate_series(1, 3) AS n;
SELECT generate_series(1, 3) AS a, generate_series(1, 2) AS b;
SELECT id, generate_series(1, id) AS n FROM employees WHERE id < 4 ORDER BY id, n;
SELECT generate_series(1, 3) * 10, 'x';
SELECT count(*) FROM (SELECT generate_series(1, 100)) AS t;
SELECT n, sum(n) OVER (ORDER BY n) AS running FROM generate_series(1, 5) AS n ORDER BY n;

-- GROUP BY
SELECT origin, month, count(*) AS n FROM flights WHERE month < 3 GROUP BY 1, 2 ORDER BY 1, 2;
SELECT month % 2 AS odd, count(*) FROM flights GROUP BY month % 2 ORDER BY odd;
SELECT CASE WHEN distance < 500 THEN 'short' WHEN distance < 1500 THEN 'medium' ELSE 'long' END AS haul,
  round(avg(air_time), 1) AS minutes
FROM flights GROUP BY haul ORDER BY minutes;
SELECT dept, count(*), sum(salary), avg(salary), min(hired), max(bonus) FROM employees GROUP BY dept ORDER BY dept;
SELECT count(*) FROM flights GROUP BY ();
SELECT max(id) AS biggest FROM employees HAVING count(*) > 100;
SELECT dept, avg(salary)::int AS average FROM employees GROUP BY dept HAVING avg(salary) > 50000 AND dept IS NOT NULL
ORDER BY dept;
SELECT origin, dest, count(*) AS n FROM flights WHERE dest IN ('LAX', 'SFO') GROUP BY ROLLUP (origin, dest)
ORDER BY origin NULLS LAST, dest NULLS LAST;
SELECT origin, month, count(*) AS n, grouping(origin, month) AS level FROM flights WHERE month <= 2
GROUP BY CUBE (origin, month) ORDER BY 4, 1, 2;
SELECT origin, carrier, count(*) FROM flights WHERE carrier IN ('AA', 'UA')
GROUP BY GROUPING SETS ((origin), (carrier), ()) ORDER BY 1 NULLS LAST, 2 NULLS LAST;
SELECT lower(dept) AS dept, count(*) FROM employees GROUP BY lower(employees.dept) ORDER BY 1;
SELECT extract(year FROM order_date) AS year, extract(quarter FROM order_date) AS quarter, count(*) FROM orders
GROUP BY 1, 2 ORDER BY 1, 2;
SELECT count(*) AS n, count(DISTINCT customer_id) AS customers FROM orders WHERE false;
SELECT status FROM orders GROUP BY status ORDER BY status;
-- fails
SELECT origin, dest, count(*) FROM flights GROUP BY origin;
-- fails
SELECT origin, count(*) AS n FROM flights WHERE count(*) > 1 GROUP BY origin;
-- fails
SELECT nothing FROM flights;
-- fails
SELECT * FROM no_such_table;

-- Merged columns come first, with the values of the left table.
SELECT * FROM (VALUES (1, 5)) AS z (id, x) LEFT JOIN (VALUES (2)) AS a (id) USING (id);
SELECT * FROM (VALUES (1, 5)) AS z (id, x) LEFT JOIN (VALUES (2)) AS a (id) USING (id)
JOIN (VALUES (1, 7)) AS c (id, y) USING (id) ORDER BY id;
SELECT * FROM (SELECT * FROM (VALUES (1)) AS z (id) JOIN (VALUES (1)) AS a (id) USING (id)) AS s WHERE id = 1;

-- Joins that merge columns, sets that count rows, limits and rows in conditions.
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) NATURAL FULL JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y)
ORDER BY id;
SELECT id, count(*), max(id) + 1 AS m FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING
(id) WHERE id > 1 GROUP BY id HAVING id < 9 ORDER BY id DESC;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) z (id, x) NATURAL LEFT JOIN (VALUES (2, 'c')) a (id, y) NATURAL FULL JOIN
(VALUES (2, 'q'), (7, 'w')) m (id, w) ORDER BY id;
SELECT l.*, r.* FROM (VALUES (1, 'a')) AS l (id, x) FULL JOIN (VALUES (2, 'c')) AS r (id, y) USING (id) ORDER BY l.id;
SELECT id::text, upper(id::text) FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING (id)
ORDER BY 1;
SELECT DISTINCT id FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING (id) ORDER BY id;
SELECT j.* FROM ((VALUES (1, 'a')) AS l (id, x) FULL JOIN (VALUES (2, 'c')) AS r (id, y) USING (id)) AS j ORDER BY
j.id;
SELECT * FROM ((VALUES (1, 'a')) AS l (id, x) FULL JOIN (VALUES (2, 'c')) AS r (id, y) USING (id)) JOIN (VALUES (2,
'zz')) AS k (id, z) USING (id) ORDER BY id;
SELECT * FROM (VALUES (1,'k')) AS k (id, z) JOIN ((VALUES (1, 'a')) AS l (id, x) FULL JOIN (VALUES (2, 'c')) AS r
(id, y) USING (id)) USING (id) ORDER BY id;
SELECT id FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING (id) WHERE EXISTS (SELECT 1
FROM (VALUES (2), (3)) AS q (k) WHERE q.k = id) ORDER BY id;
SELECT id, (SELECT max(id) FROM (VALUES (5)) AS q (id)) FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3))
AS r (id) USING (id) ORDER BY id;
SELECT carrier, count(flight) FROM flights RIGHT JOIN airlines USING (carrier) GROUP BY carrier ORDER BY carrier;
SELECT carrier, name, count(flight) FROM flights NATURAL RIGHT JOIN airlines GROUP BY carrier, name ORDER BY carrier;
WITH a AS (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) SELECT * FROM airlines NATURAL LEFT JOIN a
ORDER BY carrier;
SELECT * FROM (VALUES (1)) a (id) JOIN (VALUES (1)) b (id) ON true JOIN (VALUES (1)) c (id) USING (id);
SELECT id FROM (VALUES (1)) a (id) JOIN (VALUES (1)) b (id) USING (id), (VALUES (3)) c (id);
SELECT * FROM (VALUES (1, 5)) a (id, b) JOIN (VALUES (1, 6)) c (id, b) USING (zz);
SELECT * FROM (VALUES (1, date '2020-01-01')) a (id, d) FULL JOIN (VALUES (2, date '2020-01-01')) b (id, d) USING (d)
ORDER BY d + 1;
SELECT d + 1 AS next FROM (VALUES (1, date '2020-01-01')) a (id, d) JOIN (VALUES (2, date '2020-01-01')) b (id, d)
USING (d);
SELECT x, count(*) OVER (ORDER BY x) FROM (VALUES (1), (2)) l (x) FULL JOIN (VALUES (2), (3)) r (x) USING (x) ORDER
BY x;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS l (id, x) FULL JOIN (VALUES (2, 'c'), (3, 'd')) AS r (id, y) USING (id)
UNION ALL SELECT 9, 'n', 'm' ORDER BY 1;
SELECT s.id FROM (SELECT * FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING (id)) s ORDER
BY 1;
SELECT DISTINCT ON (id) id FROM (VALUES (1), (2)) AS l (id) FULL JOIN (VALUES (2), (3)) AS r (id) USING (id) ORDER BY
id;
SELECT x, 'k' AS k FROM (VALUES (1), (NULL), (NULL)) AS a (x) EXCEPT ALL SELECT x, 'k' FROM (VALUES (1.0), (NULL)) AS
b (x) ORDER BY x;
VALUES (1, 'a'), (1, 'a') EXCEPT ALL VALUES (1, 'a');
SELECT x FROM (VALUES (1), (1), (1), (2), (3)) AS a (x) EXCEPT ALL (SELECT 1 UNION ALL SELECT 1) EXCEPT ALL SELECT 2
ORDER BY x LIMIT 5;
WITH c AS (SELECT origin, month FROM flights) SELECT origin, count(*) FROM (SELECT * FROM c INTERSECT ALL SELECT
origin, 1 FROM flights) t GROUP BY origin ORDER BY 1;
SELECT 1, 2 EXCEPT ALL SELECT 1;
SELECT * FROM (SELECT dept, count(*) AS n FROM employees GROUP BY dept ORDER BY n DESC FETCH FIRST 2 ROWS WITH TIES) AS t
ORDER BY n DESC, dept;
SELECT DISTINCT dept FROM employees ORDER BY dept OFFSET 1 FETCH NEXT 2 ROWS WITH TIES;
SELECT x FROM (VALUES (1), (1), (2), (2), (3)) v (x) ORDER BY x OFFSET 1 ROWS FETCH FIRST 2 ROWS WITH TIES;
SELECT x FROM (VALUES (1), (1)) v (x) FETCH FIRST 1 ROWS WITH TIES;
SELECT x FROM (VALUES (1), (1), (2)) v (x) ORDER BY -x FETCH FIRST ROW WITH TIES;
SELECT carrier FROM airlines ORDER BY carrier LIMIT (SELECT NULL::int) OFFSET (SELECT count(*) - 2 FROM airlines);
SELECT carrier FROM airlines ORDER BY carrier LIMIT (SELECT -1);
SELECT carrier FROM airlines ORDER BY name LIMIT (SELECT 2);
SELECT carrier FROM airlines ORDER BY carrier LIMIT NULL OFFSET 14;
SELECT carrier FROM airlines ORDER BY carrier LIMIT ALL OFFSET 14;
SELECT carrier FROM airlines ORDER BY carrier LIMIT 2.5;
SELECT count(*) FROM orders WHERE (customer_id, status) NOT IN (SELECT customer_id, status FROM orders WHERE order_id
< 100050);
SELECT a, b, (a, b) IN (SELECT x, y FROM (VALUES (1, 1), (2, NULL)) s (x, y)) AS i, (a, b) NOT IN (SELECT x, y FROM
(VALUES (1, 1), (2, NULL)) s (x, y)) AS n FROM (VALUES (1, 1), (2, 2), (3, 3), (NULL, 1), (NULL, 7), (2, NULL)) v (a,
b) ORDER BY a, b;
SELECT a FROM (VALUES (1, 1), (2, 2), (3, 3), (NULL, 1)) v (a, b) WHERE (a, b) NOT IN (SELECT x, y FROM (VALUES (1,
1), (2, NULL)) s (x, y)) ORDER BY a;
SELECT a FROM (VALUES (1, 1), (2, 2)) v (a, b) WHERE (a, b) IN (SELECT 1, 1, 1);
SELECT a FROM (VALUES (1, 1), (2, 2)) v (a, b) WHERE (a, b) IN (SELECT 1);
SELECT a FROM (VALUES (1, 1), (2, 2)) v (a, b) WHERE ROW(a, b) IN (VALUES (2, 2)) OR a = 1 ORDER BY a;
SELECT (1, 2) IN (SELECT 1, 2 WHERE false) AS none;
SELECT * FROM ROWS FROM (generate_series(1, 2), abs(-3));
SELECT v.a, t.* FROM (VALUES (2)) v (a), ROWS FROM (generate_series(1, v.a), string_to_table('a,b,c', ',')) t (n, s)
ORDER BY n;
SELECT * FROM upper('x') WITH ORDINALITY;
SELECT v.x, a FROM (VALUES (-1), (2)) v (x), abs(v.x) AS a ORDER BY 1;
WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT x + 1 AS x FROM a) SELECT x FROM a) AS inner_x, x FROM a;
WITH RECURSIVE a AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM a WHERE x < 3), b AS (WITH RECURSIVE a AS (SELECT 10
AS x UNION ALL SELECT x + 1 FROM a WHERE x < 12) SELECT sum(x) AS s FROM a) SELECT sum(a.x), max(b.s) FROM a, b;
SELECT 1 AS one HAVING false;
SELECT 'x' AS w FROM flights HAVING 1 > 2;
SELECT (SELECT 1 WHERE false) AS nothing;
SELECT x, x + (SELECT 1 WHERE false) AS s FROM (VALUES (1)) v (x) WHERE (SELECT true WHERE false) IS NULL;
SELECT max(dept) AS dept, count(*) FROM employees GROUP BY dept HAVING dept > 'F' ORDER BY 1;
SELECT trim('xy' FROM 'yxTidexy') AS a, trim(FROM '  tide ') AS b, trim(both FROM '  tide  ') AS c, trim(leading FROM
'  t ') AS d;
SELECT parse_ident('Foo . Bar.baz()', false), parse_ident(NULL);
SELECT parse_ident('a b');
SELECT x FROM (VALUES (ARRAY[1]), (ARRAY[2]), (NULL)) v (x) WHERE x IN (SELECT y FROM (VALUES (ARRAY[1]), (ARRAY[3]))
w (y));
SELECT x, x IN (SELECT y FROM (VALUES (ARRAY[1]), (NULL)) w (y)) AS i FROM (VALUES (ARRAY[1]), (ARRAY[2]),
(ARRAY[1,NULL])) v (x) ORDER BY x;
SELECT id FROM arrays WHERE ia IN (SELECT ia FROM arrays WHERE id > 2) ORDER BY id;
SELECT id FROM arrays WHERE ia NOT IN (SELECT ia FROM arrays WHERE id > 2 AND ia IS NOT NULL) ORDER BY id;
SELECT count(c.*), count(DISTINCT c.*), count(*) FROM orders o LEFT JOIN customers c USING (customer_id);
SELECT count(DISTINCT a.*) FROM airlines a, airports b WHERE b.faa = 'JFK';
SELECT o.customer_id, count(c.*) FROM (VALUES (1), (999)) o (customer_id) LEFT JOIN customers c ON c.customer_id =
o.customer_id GROUP BY 1 ORDER BY 1;
WITH cumulated AS (SELECT product_id, sum(quantity * unit_price) OVER (ORDER BY order_id) / sum(quantity *
unit_price) OVER () AS share FROM orders) SELECT count(*) FILTER (WHERE share <= 0.8) AS n FROM cumulated;

SELECT a.x, p.y FROM (SELECT 1 AS x) a FULL JOIN (SELECT 2 AS y) p ON a.x = p.y ORDER BY a.x;

SELECT a.name, f.dest FROM airlines a LEFT JOIN (SELECT DISTINCT carrier, dest FROM flights WHERE dest = 'LAX') f
  ON f.carrier = a.carrier ORDER BY f.dest DESC, a.name;

SELECT a.name, count(*) OVER (PARTITION BY f.dest) AS n
FROM airlines a LEFT JOIN (SELECT DISTINCT carrier, dest FROM flights WHERE dest = 'LAX') f ON f.carrier = a.carrier
ORDER BY a.name;

-- Unquoted aliases have lower case
SELECT 1 AS Foo, 2 AS MICROSECOND, 3 AS "Bar", 4 Second_Value ORDER BY FOO;
SELECT Total, N FROM (SELECT sum(distance) AS Total, count(*) AS N FROM flights) AS T ORDER BY TOTAL;
SELECT T.X, t.y FROM (VALUES (1, 2)) AS T(X, Y) ORDER BY x;
SELECT G, Carrier AS Code FROM generate_series(1, 2) AS G, airlines A WHERE a.carrier < 'B' ORDER BY CODE, g;
WITH c(First, "Second") AS (VALUES (1, 2)) SELECT * FROM c;
SELECT month AS M, count(*) AS N FROM flights GROUP BY M HAVING count(*) > 0 ORDER BY N DESC, m LIMIT 3;
SELECT row_to_json(t) FROM (SELECT 1 AS One, 2 AS "Two") AS t;

-- Columns are named after what was written
SELECT ARRAY[]::text[], ARRAY[]::int[], (1, 2) IN (SELECT 1, 2), (1, 2) NOT IN (SELECT 1, 3);
SELECT ROW(1, 2) = ANY (SELECT 1, 2);
SELECT * FROM (SELECT ARRAY[]::text[], (1, 2) IN (VALUES (1, 2))) AS t;

-- refused: rows without columns
SELECT count(*) FROM (SELECT FROM airlines UNION SELECT FROM airlines) AS t;
SELECT count(*) FROM (SELECT FROM airlines UNION ALL SELECT FROM airlines) AS t;

-- Sets of grouping within others.
SELECT carrier, origin, month, count(*) AS n FROM flights WHERE carrier IN ('AA', 'HA')
GROUP BY GROUPING SETS (carrier, GROUPING SETS ((origin, carrier), ROLLUP (month, carrier)), ()) ORDER BY carrier, origin, month, n;
SELECT origin, month > 6 AS late, sum(distance) AS s, grouping(origin, month > 6) AS g FROM flights
GROUP BY GROUPING SETS (CUBE (origin, month > 6), (origin)) ORDER BY origin, late, g, s;

-- Joins whose conditions follow one another.
SELECT a.carrier, count(*) AS n FROM airlines a LEFT JOIN flights f JOIN planes p ON f.tailnum = p.tailnum AND p.seats > 300
ON a.carrier = f.carrier GROUP BY a.carrier ORDER BY a.carrier;
SELECT count(*) AS n, count(c.z) AS c FROM (VALUES (1), (2)) a (x) LEFT JOIN (VALUES (1), (3)) b (y) LEFT JOIN (VALUES (3), (4)) c (z)
ON b.y = c.z ON a.x = b.y;
SELECT a.x, b.y, c.z FROM (VALUES (1), (2)) a (x) JOIN (VALUES (1), (2)) b (y) ON a.x = b.y LEFT JOIN (VALUES (2)) c (z) ON c.z = b.y
ORDER BY a.x;

-- refused: SEARCH of a recursive query
WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) SEARCH DEPTH FIRST BY n SET o SELECT * FROM t;
-- refused: CYCLE of a recursive query
WITH RECURSIVE t (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) CYCLE n SET c USING p SELECT n, c FROM t ORDER BY n;
-- refused: an alias of USING
SELECT x.a FROM (VALUES (1)) t (a) JOIN (VALUES (1)) u (a) USING (a) AS x;
SELECT name 'abc' AS n, name 'a' = 'a' AS is, CAST(name 'b' AS text) AS t, jsonpath '$.a' AS p;

-- References to aliases in lower case, in other places than expressions.
SELECT * FROM (SELECT 1 AS Id, 2 AS b) AS s JOIN (SELECT 1 AS ID, 3 AS c) AS t USING (Id);
SELECT G.* FROM (SELECT 1 AS x) AS G;
SELECT N.* FROM generate_series(1, 3) AS N ORDER BY N;
-- A number in DISTINCT ON is that of an output column.
SELECT DISTINCT ON (1) dept, id FROM employees ORDER BY 1, 2;
SELECT count(*) AS n FROM (SELECT DISTINCT ON (2, 1) id % 2 AS odd, dept FROM employees) AS t;
SELECT DISTINCT ON (3) dept, id FROM employees;
