-- IN and NOT IN with subqueries, where a NULL is among the values or among the rows.

SELECT id FROM t_types WHERE i NOT IN (SELECT id FROM t_types) ORDER BY id;
SELECT id FROM t_types WHERE i NOT IN (SELECT si FROM t_types) ORDER BY id;
SELECT id FROM t_types WHERE i NOT IN (SELECT si FROM t_types WHERE si IS NOT NULL) ORDER BY id;
SELECT id FROM t_types WHERE i NOT IN (SELECT id FROM t_types) OR id > 100 ORDER BY id;
SELECT id FROM t_types WHERE i NOT IN (SELECT si FROM t_types) OR id = 3 ORDER BY id;
SELECT id FROM t_types WHERE NOT (i IN (SELECT id FROM t_types) OR id = 1) ORDER BY id;
SELECT id FROM t_types WHERE NOT (i IN (SELECT si FROM t_types) AND id > 3) ORDER BY id;
SELECT id FROM t_types WHERE (i IN (SELECT id FROM t_types)) IS NULL ORDER BY id;
SELECT id FROM t_types WHERE (i NOT IN (SELECT si FROM t_types)) IS NOT TRUE ORDER BY id;
SELECT id FROM t_types WHERE CASE WHEN i IN (SELECT id FROM t_types) THEN false ELSE i NOT IN (SELECT id FROM t_types) END
ORDER BY id;
SELECT id FROM t_types WHERE coalesce(i NOT IN (SELECT si FROM t_types), id < 4) ORDER BY id;
SELECT id FROM t_types WHERE i / 2 NOT IN (SELECT id FROM t_types) ORDER BY id;
SELECT id FROM t_types WHERE nullif(id, 2) NOT IN (SELECT id FROM t_types WHERE id > 4) ORDER BY id;
SELECT id FROM t_types WHERE NULL::int NOT IN (SELECT id FROM t_types) ORDER BY id;
SELECT id FROM t_types WHERE NULL::int NOT IN (SELECT id FROM t_types WHERE id < 0) ORDER BY id;
SELECT id FROM t_types WHERE i NOT IN (SELECT id FROM t_types WHERE id < 0) OR false ORDER BY id;
SELECT id, NULL::int IN (SELECT max(id) FROM t_types) AS x FROM t_types ORDER BY id;
SELECT id, id + NULL::int IN (SELECT id FROM t_types) AS x FROM t_types ORDER BY id;
SELECT id, i IN (SELECT si FROM t_types) AS x, i NOT IN (SELECT id FROM t_types) AS y FROM t_types ORDER BY id;
SELECT id, i NOT IN (SELECT o.si FROM t_types o WHERE o.id > q.id) AS x FROM t_types q ORDER BY id;
SELECT id FROM t_types q WHERE d NOT IN (SELECT o.i FROM t_types o WHERE o.id < q.id) ORDER BY id;
SELECT id FROM t_types q WHERE i NOT IN (SELECT o.si FROM t_types o WHERE o.i = q.i) OR id = 6 ORDER BY id;
SELECT id FROM t_types q WHERE bi IN (SELECT o.i FROM t_types o WHERE o.i = q.i) ORDER BY id;
SELECT id FROM t_types q WHERE 3 IN (SELECT o.i::bigint FROM t_types o WHERE o.i = q.i) ORDER BY id;
SELECT id FROM t_types WHERE t NOT IN (SELECT v FROM t_types WHERE id > 3) OR t IS NULL ORDER BY id;
SELECT count(*) FILTER (WHERE i NOT IN (SELECT id FROM t_types)) AS x, count(*) FILTER (WHERE i IN (SELECT si FROM
t_types)) AS y, count(*) AS n FROM t_types;
SELECT i NOT IN (SELECT si FROM t_types) AS x, count(*) AS n FROM t_types GROUP BY 1 ORDER BY 1;
SELECT i IN (SELECT id FROM t_types) AS x, bool_or(id NOT IN (SELECT i FROM t_types)) AS y FROM t_types GROUP BY 1
ORDER BY 1;
SELECT id FROM t_types ORDER BY i NOT IN (SELECT id FROM t_types), id;
SELECT si, count(*) AS n FROM t_types GROUP BY si HAVING si NOT IN (SELECT i FROM t_types WHERE id < 4) OR count(*) > 1
ORDER BY si;
SELECT a.id, b.id AS other FROM t_types a JOIN t_types b ON b.id = a.i WHERE b.si IN (SELECT id FROM t_types) OR a.si NOT
IN (SELECT si FROM t_types) ORDER BY 1, 2;

-- Truth tests are never NULL, also as keys of groups.

SELECT x, count(*) AS n FROM (SELECT (i > 1) IS TRUE AS x FROM t_types) q GROUP BY x ORDER BY x;
SELECT x, count(*) AS n FROM (SELECT (i > 1) IS NOT TRUE AS x FROM t_types) q GROUP BY x ORDER BY x;
SELECT x, count(*) AS n FROM (SELECT (i > 1) IS FALSE AS x FROM t_types) q GROUP BY x ORDER BY x;
SELECT x, count(*) AS n FROM (SELECT (i > 1) IS NOT FALSE AS x FROM t_types) q GROUP BY x ORDER BY x;
SELECT x, count(*) AS n FROM (SELECT (i > 1) IS UNKNOWN AS x FROM t_types) q GROUP BY x ORDER BY x;
SELECT x, count(*) AS n FROM (SELECT (i > 1) IS NOT UNKNOWN AS x FROM t_types) q GROUP BY x ORDER BY x;
SELECT b IS TRUE AS x, max(i) FILTER (WHERE b IS NOT FALSE) AS y, bool_and((si < 3) IS NOT UNKNOWN) AS z FROM t_types
GROUP BY b IS TRUE ORDER BY 1;
SELECT id, row_number() OVER (PARTITION BY b IS TRUE ORDER BY id) AS n, bool_or(b IS NOT TRUE) OVER (ORDER BY id) AS x FROM
t_types ORDER BY id;

-- An equality beside a join on keys that may be NULL.

SELECT a.id FROM t_types a RIGHT JOIN (VALUES (1), (2)) v (x) ON a.id = v.x + 100 WHERE a.id = (SELECT max(o.si) FROM
t_types o WHERE a.t < o.v);
SELECT a.id FROM t_types a RIGHT JOIN (VALUES (1), (2), (6)) v (x) ON a.id = v.x AND a.si > 0 WHERE a.si - a.i = (SELECT
max(nullif(o.si, o.si)) FROM t_types o WHERE a.t < o.v);
SELECT count(*) FROM t_types a JOIN t_types b ON a.t IS NOT DISTINCT FROM b.v JOIN t_types c ON c.si = b.si;
SELECT count(*) FROM t_types a JOIN t_types b ON a.t = b.v JOIN t_types c ON c.si IS NOT DISTINCT FROM b.si WHERE a.id < 100;
SELECT count(*) FROM t_types a, t_types b, t_types c WHERE a.i IS NOT DISTINCT FROM b.i AND b.si = c.si AND c.i = a.i;
SELECT a.id, b.id AS other FROM t_types a JOIN t_types b ON a.si IS NOT DISTINCT FROM b.si AND a.i = b.i ORDER BY 1, 2;

-- A subquery whose condition has only outer columns.

SELECT a.id, (SELECT max(o.i) FROM t_types o WHERE a.i = a.si) AS x FROM t_types a ORDER BY a.id;
SELECT a.id, (SELECT count(*) FROM t_types o WHERE a.i = 3) AS x FROM t_types a ORDER BY a.id;

-- LATERAL that uses nothing of the left side, and has another LATERAL inside.

WITH w AS (SELECT max(a.si) AS x, min(a.id) AS y FROM t_types a LEFT JOIN LATERAL (SELECT o.i FROM t_types o WHERE o.i = a.i
ORDER BY 1 LIMIT 2) b ON true) SELECT c.x, d.y FROM w c CROSS JOIN LATERAL (SELECT e.y FROM w e LIMIT 2) d;

-- A condition without columns above an aggregate that always has a row.

SELECT a.x FROM (SELECT sum(i)::bigint AS x FROM t_types) a WHERE 1 < (SELECT max(2) FROM t_types WHERE id < 0);
SELECT a.x FROM (SELECT count(*) AS x FROM t_types) a WHERE 1 < (SELECT max(2) FROM t_types WHERE id > 0);
SELECT a.b, a.x FROM (SELECT b, count(*) AS x FROM t_types GROUP BY ROLLUP (b)) a WHERE 1 < (SELECT max(2) FROM t_types
WHERE id < 0) ORDER BY 1, 2;

-- A numeric and a double are compared as doubles
SELECT id, n1 IN (SELECT d1 FROM nums) AS in_doubles, n1 IN (SELECT d FROM floats WHERE d < 1e10) AS among_floats,
  n1 NOT IN (SELECT d1 FROM nums WHERE d1 IS NOT NULL) AS none, d1 IN (SELECT n1 FROM nums) AS in_numerics,
  n1 = ANY (SELECT d1 FROM nums) AS is_any, n1 >= ALL (SELECT d1 FROM nums WHERE d1 < 1e15) AS is_largest FROM nums ORDER BY id;
SELECT id FROM nums WHERE n1 IN (SELECT d FROM floats) ORDER BY id;
SELECT id FROM nums WHERE n1 NOT IN (SELECT d FROM floats WHERE d IS NOT NULL) ORDER BY id;
SELECT id FROM t_types WHERE n IN (SELECT r FROM floats) ORDER BY id;
SELECT id FROM t_types WHERE d IN (SELECT n FROM t_types) ORDER BY id;
SELECT id, n1 IN (d1, d2) AS columns, n1 IN (0.000001::float8, 2.5::float8) AS doubles, n1 BETWEEN d2 AND d1 AS between FROM nums ORDER BY id;
SELECT a.id, b.id FROM nums a JOIN (SELECT id, d1 AS n1 FROM nums) b USING (n1) WHERE a.id IN (8, 12, 15, 18) ORDER BY 1, 2;
SELECT a.id, b.id FROM t_types a JOIN floats b ON a.n = b.d ORDER BY 1, 2;
