-- Subqueries in FROM keep their order: aggregates, windows without ORDER BY, limits and the output see it.

SELECT array_agg(carrier) AS a FROM (SELECT carrier FROM airlines ORDER BY carrier DESC) s;
SELECT string_agg(carrier, ',') AS a, array_agg(n) AS b FROM (SELECT carrier, length(name) AS n FROM airlines ORDER BY n, carrier) s;
SELECT json_agg(carrier) AS a, jsonb_agg(s) AS b, json_object_agg(carrier, name) AS c FROM (SELECT carrier, name FROM airlines ORDER BY name DESC) s;
SELECT array_agg(name) AS a FROM (SELECT name FROM airlines ORDER BY carrier DESC) s;
SELECT array_agg(name) AS a FROM (SELECT name FROM airlines ORDER BY length(name) DESC, lower(carrier)) s;
SELECT array_agg(b) AS a FROM (SELECT carrier, name FROM airlines ORDER BY carrier DESC) s(a, b);
SELECT array_agg(upper(name)) AS a FROM (SELECT * FROM (SELECT name, carrier FROM airlines ORDER BY carrier DESC) s WHERE carrier > 'C') t;
SELECT dept, array_agg(name) AS names, string_agg(name, '/') AS joined FROM (SELECT * FROM employees ORDER BY salary DESC NULLS LAST, id) s GROUP BY dept ORDER BY dept;
SELECT dept, array_agg(name) FILTER (WHERE id < 20) AS some, sum(id) AS n
FROM (SELECT * FROM employees ORDER BY hired DESC, id) s GROUP BY dept ORDER BY dept NULLS FIRST;
SELECT array_agg(x) AS a, array_agg(y) AS b FROM (SELECT id AS x, -id AS y FROM employees ORDER BY id % 5, id DESC LIMIT 7) s;
WITH s AS (SELECT carrier, name FROM airlines ORDER BY name) SELECT string_agg(carrier, ' ') AS a, (SELECT array_agg(name) FROM s) AS b FROM s;
SELECT ARRAY(SELECT x FROM (SELECT id AS x FROM employees ORDER BY id DESC) s WHERE x < 9) AS a;
SELECT (SELECT string_agg(o, ',') FROM (SELECT order_id::text AS o FROM orders WHERE orders.customer_id = c.customer_id ORDER BY order_id DESC) s) AS orders
FROM customers c ORDER BY customer_id LIMIT 5;
SELECT array_agg(iv) AS a FROM (SELECT iv FROM t_types WHERE id < 12 ORDER BY iv::interval, id) s;
SELECT array_agg(id) AS a FROM (SELECT id, ARRAY[i, si] AS k FROM t_types ORDER BY k DESC, id) s;
SELECT array_agg(x) AS a FROM (SELECT DISTINCT dest AS x FROM flights WHERE carrier = 'AS' OR carrier = 'HA' ORDER BY dest DESC) s;
SELECT array_agg(x) AS a FROM (SELECT count(*) AS n, origin AS x FROM flights GROUP BY origin ORDER BY count(*)) s;

SELECT id, row_number() OVER () AS n, lag(id) OVER () AS before, lead(id, 2, 0) OVER () AS after, ntile(3) OVER () AS third
FROM (SELECT id FROM employees ORDER BY salary DESC NULLS LAST, id) s ORDER BY n;
SELECT id, first_value(id) OVER () AS first, last_value(id) OVER () AS last, nth_value(id, 2) OVER () AS second, rank() OVER () AS rank, count(*) OVER () AS n
FROM (SELECT id FROM employees ORDER BY salary DESC NULLS LAST, id) s ORDER BY id;
SELECT id, array_agg(id) OVER (ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near, sum(id) OVER (ROWS UNBOUNDED PRECEDING) AS total
FROM (SELECT id FROM employees WHERE id < 9 ORDER BY -id) s ORDER BY id;
SELECT x FROM (SELECT id AS x, row_number() OVER () AS n FROM (SELECT id FROM employees ORDER BY name, id) s) t WHERE n <= 3 ORDER BY x;
SELECT array_agg(id) AS a FROM (SELECT id, row_number() OVER () AS n FROM (SELECT id FROM employees ORDER BY name, id) s) t;

SELECT id FROM (SELECT id FROM employees ORDER BY salary DESC NULLS LAST, id) s LIMIT 3;
SELECT name FROM (SELECT name FROM employees ORDER BY salary DESC NULLS LAST, id) s OFFSET 2 LIMIT 3;
SELECT * FROM (SELECT * FROM (SELECT carrier, name FROM airlines ORDER BY name DESC) s WHERE carrier > 'B') t LIMIT 4;
WITH s AS (SELECT id, dept FROM employees ORDER BY id DESC) SELECT dept FROM s LIMIT 3;
SELECT (SELECT id FROM (SELECT id FROM employees ORDER BY id DESC) s LIMIT 1) AS last, (SELECT id FROM (SELECT id FROM employees ORDER BY id) s LIMIT 1) AS first;
SELECT count(*) AS n, sum(x) AS total FROM (SELECT id AS x FROM (SELECT id FROM employees ORDER BY id DESC) s LIMIT 4) t;
SELECT count(*) AS n FROM (SELECT id FROM employees ORDER BY id DESC) s;
SELECT max(a.id) AS a, count(*) AS n FROM (SELECT id FROM employees ORDER BY name) a JOIN (SELECT id FROM employees ORDER BY id DESC LIMIT 5) b USING (id);
-- fails
SELECT id FROM (SELECT id FROM employees ORDER BY id) s FETCH FIRST 2 ROWS WITH TIES;

-- An aggregate belongs to the innermost query that has one of its columns.

SELECT (SELECT count(e.id)) AS n FROM employees e;
SELECT (SELECT count(id)) AS n, (SELECT avg(salary) FROM (VALUES (1)) v) AS a FROM employees;
SELECT (SELECT count(*) FILTER (WHERE e.id > 5)) AS n, count(*) AS all_rows FROM employees e;
SELECT (SELECT sum(e.id) + count(*) FROM airlines) AS n FROM employees e;
SELECT (SELECT string_agg(e.dept, ',' ORDER BY e.id) FROM airlines LIMIT 1) AS a, (SELECT count(DISTINCT e.dept)) AS d FROM employees e WHERE id < 9;
SELECT dept, (SELECT sum(e.id)) AS total, max(id) AS last, (SELECT count(*) FROM employees i WHERE i.dept = e.dept) AS n FROM employees e GROUP BY dept ORDER BY dept;
SELECT dept, (SELECT min(e.id) + max(i.id) FROM employees i) AS n FROM employees e GROUP BY dept ORDER BY dept;
SELECT dept FROM employees e GROUP BY dept HAVING (SELECT max(e.id) > 38) ORDER BY dept;
SELECT dept, (SELECT 'many' FROM (VALUES (1)) v HAVING count(e.id) > 9) AS size FROM employees e GROUP BY dept ORDER BY dept;
SELECT dept, (SELECT grouping(e.dept)) AS g, (SELECT count(e.id)) AS n FROM employees e GROUP BY ROLLUP (dept) ORDER BY g, dept;
SELECT (SELECT (SELECT count(e.id))) AS n FROM employees e;
SELECT x, (SELECT (SELECT max(i.id + v.x)) FROM employees i) AS n FROM (VALUES (1), (2)) v(x) ORDER BY x;
SELECT (SELECT m FROM (SELECT max(e.id) AS m) s) AS n FROM employees e;
SELECT 1 AS one, EXISTS (SELECT 1 FROM (VALUES (1)) v HAVING max(e.id) > 39) AS any_high FROM employees e;
SELECT id, (SELECT max(e.id) OVER ()) AS own FROM employees e ORDER BY id LIMIT 2;
-- fails
SELECT e.id, (SELECT count(e.id)) AS n FROM employees e;
-- fails
SELECT (SELECT max(e.id) FROM airlines) AS n FROM employees e;
-- fails
SELECT id FROM employees e WHERE id = (SELECT max(e.id) FROM (VALUES (1)) v);
-- fails
SELECT s.m FROM employees e, LATERAL (SELECT max(e.id) AS m) s;
-- fails
SELECT dept, (SELECT e.id) AS n FROM employees e GROUP BY dept;

-- Set-returning functions in ORDER BY, and beside DISTINCT ON
SELECT t.x, generate_series(1, 3) AS g FROM (VALUES (1), (2)) AS t(x) ORDER BY x, generate_series(1, 3) DESC;
SELECT t.x FROM (VALUES (1), (2)) AS t(x) ORDER BY t.x DESC, generate_series(1, 3);
SELECT generate_series(1, 3) + 1 ORDER BY generate_series(1, 3);
SELECT unnest(ARRAY[1, 2, 3]) ORDER BY unnest(ARRAY[1, 2, 3]) DESC LIMIT 2;
SELECT DISTINCT ON (a) a, b, generate_series(1, 3) AS g FROM (VALUES (3, 2), (3, 1), (1, 1), (1, 4), (5, 3), (5, 1)) AS t(a, b) ORDER BY a, b DESC, g DESC;
SELECT DISTINCT ON (a, b, g) a, b, generate_series(1, 3) AS g FROM (VALUES (3, 2), (3, 1), (1, 1)) AS t(a, b) ORDER BY a, b DESC, g DESC;
SELECT DISTINCT ON (1, 3) a, b, generate_series(1, 2) FROM (VALUES (3, 2), (3, 1), (1, 1)) AS t(a, b) ORDER BY 1, 3 DESC, 2;
SELECT a AS a, a, generate_series(1, 2) FROM (VALUES (2), (1)) AS t(a) ORDER BY a + generate_series(1, 2), a;
SELECT month, count(*) AS n, generate_series(1, 2) AS g FROM flights WHERE month < 3 GROUP BY month ORDER BY generate_series(1, 2) DESC, count(*), month;
WITH t AS (SELECT 1 AS a UNION SELECT 2) SELECT a, unnest(ARRAY[a, a + 1]) AS b FROM t ORDER BY unnest(ARRAY[a, a + 1]) DESC, a;
SELECT sum(g) FROM (SELECT generate_series(1, 5) AS g ORDER BY generate_series(1, 5) DESC LIMIT 2) AS s;
SELECT DISTINCT generate_series(1, 3) % 2 AS odd FROM (VALUES (1), (2)) AS t ORDER BY generate_series(1, 3) % 2 DESC;

-- The order of a subquery chooses the rows of DISTINCT ON.
SELECT DISTINCT ON (dept) dept, name FROM (SELECT * FROM employees ORDER BY dept, salary DESC NULLS LAST, id) s;
SELECT DISTINCT ON (s.d, carrier) name, carrier FROM (SELECT name, carrier, carrier < 'B' AS d FROM airlines ORDER BY carrier, d DESC, name) s;

-- An aggregate of subqueries with columns of an outer query only belongs to that query
SELECT (SELECT max((SELECT i.salary FROM employees i WHERE i.id = o.id))) AS m FROM employees o;
SELECT (SELECT max((SELECT i.salary FROM employees i WHERE i.id = o.id)) FILTER (WHERE o.id < 10)) AS m FROM employees o;
SELECT o.id, (SELECT max((SELECT i.salary FROM employees i WHERE i.id = o.id AND m.id > 0)) FROM employees m WHERE m.id < 5) AS own FROM employees o ORDER BY o.id;

-- The names of columns of outer queries in LATERAL
SELECT * FROM (VALUES (1), (2)) AS v(a), LATERAL (SELECT a, b FROM (VALUES (10), (20)) AS w(b)) AS s ORDER BY 1, 3;
SELECT s.a, s.b FROM (VALUES (1), (2)) AS v(a), LATERAL (SELECT a, * FROM (VALUES (10), (20)) AS w(b) OFFSET 0) AS s ORDER BY 1, 2;

-- Columns of a UNION that cannot be NULL, computed
SELECT sum(i) AS s, count(i) AS n FROM (SELECT a + 1 FROM (VALUES (1), (2)) AS v(a) UNION ALL SELECT a FROM (VALUES (1)) AS w(a)) AS f(i);
SELECT i % 2 AS odd, sum(i) AS s FROM (SELECT id * 2 + 1 FROM employees UNION ALL SELECT id FROM employees) AS f(i) GROUP BY 1 ORDER BY 1;
SELECT ARRAY(SELECT f.i FROM ((SELECT d + g.i FROM generate_series(4, 30, 3) d ORDER BY 1) UNION ALL (SELECT d + g.i FROM generate_series(0, 30, 5) d ORDER BY 1)) f(i)
  ORDER BY f.i LIMIT 10) AS smallest FROM generate_series(1, 3) g(i) ORDER BY 1;
SELECT * FROM (VALUES (1, 2), (3, 4)) AS t(a, b), LATERAL (SELECT t.a, t.b AS c) AS s ORDER BY 1;
SELECT g, s.a, s.t FROM (VALUES (1), (2)) AS v(g), LATERAL (SELECT array_agg(x ORDER BY x DESC) AS a, string_agg(x::text, ',' ORDER BY x) AS t
FROM (VALUES (1), (5), (3)) AS w(x) WHERE x > g) AS s ORDER BY g;
SELECT d, s.a FROM (VALUES (1), (2)) AS v(d), LATERAL (SELECT array_agg(o.id) AS a FROM (SELECT id FROM nums WHERE id < 5 AND id >= d ORDER BY id DESC) AS o) AS s ORDER BY d;
SELECT * FROM (VALUES (1, 2), (3, 4)) AS t(a, b), LATERAL (SELECT a) AS s(x) WHERE s.x > t.b - 2 ORDER BY 1;
SELECT t.a, s.a AS other FROM (VALUES (1, 2), (3, 4)) AS t(a, b) JOIN LATERAL (SELECT t.a + t.b AS a) AS s ON s.a > t.a + 3 ORDER BY 1;
SELECT e.id, s.dept FROM employees e JOIN (VALUES (1), (2)) AS v(n) ON v.n = e.id, LATERAL (SELECT e.dept) AS s ORDER BY e.id;
SELECT t.a, s.a AS element FROM (VALUES (1, '{1,2}'::int[]), (2, NULL)) AS t(a, l) LEFT JOIN LATERAL (SELECT unnest(t.l) AS a) AS s ON true ORDER BY 1, 2;
