-- Correlated subqueries: EXISTS, IN, ANY and ALL over aggregates, grouping sets, joins and set operations, nested, and in
-- each clause. `outers.k` has values without a match in `inners`, duplicates, and NULL; `nones` is empty.

SELECT k FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE NOT EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k HAVING count(*) = 0);
SELECT k FROM outers o WHERE NOT EXISTS (SELECT sum(v) FROM inners i WHERE i.k = o.k HAVING sum(v) IS NULL);
SELECT k FROM outers o WHERE EXISTS (SELECT max(v) FROM inners i WHERE i.k = o.k OFFSET 1);
SELECT k FROM outers o WHERE EXISTS (SELECT max(v) FROM inners i WHERE i.k = o.k LIMIT 0);
SELECT k FROM outers o WHERE EXISTS (SELECT max(v) FROM inners i WHERE i.k = o.k LIMIT 1);
SELECT k FROM outers o WHERE 0 IN (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE 0 NOT IN (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE k IN (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE k NOT IN (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT k, k IN (SELECT count(*) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, v IN (SELECT max(v) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, v NOT IN (SELECT max(v) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, v = ANY (SELECT max(v) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, v >= ALL (SELECT max(v) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, 0 = ALL (SELECT count(*) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, v <> ALL (SELECT sum(v) FROM inners i WHERE i.k = o.k HAVING count(*) > 1) AS x FROM outers o;
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ());
SELECT k FROM outers o WHERE NOT EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ());
SELECT k, EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ()) AS x FROM outers o;
SELECT k, EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY () HAVING count(*) > 0) AS x FROM outers o;
SELECT k, EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k HAVING true) AS x FROM outers o;
SELECT k, EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k HAVING false) AS x FROM outers o;
SELECT k, (SELECT 7 FROM inners i WHERE i.k = o.k GROUP BY ()) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ()) z) AS x FROM outers o;
SELECT count(*) FROM inners i GROUP BY ();
SELECT 1 FROM inners i GROUP BY ();
SELECT 1 FROM nones e GROUP BY ();
SELECT 1 FROM nones e GROUP BY (), ();
SELECT 1 FROM nones e GROUP BY GROUPING SETS (());
SELECT count(*) FROM nones e GROUP BY GROUPING SETS ((), ());
SELECT k, count(*) FROM inners i GROUP BY (), k;
SELECT 1 FROM nones e HAVING true;
SELECT 1 FROM nones e GROUP BY () HAVING count(*) = 0;
SELECT k, EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ROLLUP (i.k)) AS x FROM outers o;
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ROLLUP (i.k));
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY ROLLUP (i.k) HAVING i.k IS NULL);
SELECT k, k IN (SELECT i.k FROM inners i WHERE i.k = o.k GROUP BY ROLLUP (i.k)) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.k FROM inners i WHERE i.k = o.k GROUP BY CUBE (i.k)) z) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.k FROM inners i WHERE i.k = o.k GROUP BY CUBE (i.k, i.v)) z) AS x FROM
outers o;
SELECT k, EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k GROUP BY GROUPING SETS ((), (i.k))) AS x FROM outers o;
SELECT k, (SELECT string_agg(coalesce(v::text, 'n') || ':' || n || ':' || g, ',' ORDER BY v, g) FROM (SELECT i.v,
count(*) n, grouping(i.v) g FROM inners i WHERE i.k = o.k GROUP BY ROLLUP (i.v)) z) AS x FROM outers o;
SELECT k, (SELECT string_agg(n || ':' || g, ',' ORDER BY n, g) FROM (SELECT count(*) n, grouping(i.k, i.v) g FROM
inners i WHERE i.k = o.k GROUP BY CUBE (i.k, i.v)) z) AS x FROM outers o;
SELECT k, (SELECT max(n) FROM (SELECT count(*) n FROM inners i WHERE i.v > o.v GROUP BY i.k) z) AS x FROM outers o;
SELECT k, (SELECT sum(v) FROM inners i WHERE i.k = o.k GROUP BY GROUPING SETS ((), (i.v)) HAVING grouping(i.v) = 1) AS
x FROM outers o;
-- refused: several empty grouping sets for each outer row
SELECT k, (SELECT count(*) FROM (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY GROUPING SETS ((), ())) z) AS x FROM
outers o;
SELECT k, (SELECT count(*) FROM inners i WHERE i.k = o.k AND EXISTS (SELECT count(*) FROM fews j WHERE j.k = o.k)) AS
x FROM outers o;
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k AND NOT EXISTS (SELECT 1 FROM fews j WHERE
j.k = o.k));
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE EXISTS (SELECT 1 FROM fews j WHERE j.k = o.k AND j.v
>= i.v));
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE EXISTS (SELECT 1 FROM fews j WHERE EXISTS (SELECT 1
FROM nones e WHERE e.k = o.k)));
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k IN (SELECT o.k FROM outers o WHERE EXISTS
(SELECT 1 FROM fews j WHERE j.k = o.k)));
SELECT k, (SELECT count(*) FROM inners i WHERE i.k IN (SELECT o.k FROM outers o WHERE EXISTS (SELECT 1 FROM fews j
WHERE j.k = o.k)) AND i.k > o.k) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM inners i WHERE i.v > o.v AND i.k IN (SELECT o.k FROM fews AS o WHERE EXISTS (SELECT 1
FROM fews j WHERE j.v = o.v))) AS x FROM outers o;

-- The inner subqueries use columns of the middle query only, and the middle one is not correlated.
SELECT k FROM outers o WHERE k IN (SELECT i.k FROM inners i WHERE i.k IN (SELECT p.k FROM outers p WHERE p.k = i.k AND p.v
>= i.v));
SELECT k FROM outers o WHERE k NOT IN (SELECT i.k FROM inners i WHERE i.k NOT IN (SELECT j.k FROM fews j WHERE j.v > i.v
AND j.k IS NOT NULL) AND i.k IS NOT NULL);
SELECT k FROM outers o WHERE k IN (SELECT i.k FROM inners i WHERE i.k IN (SELECT j.k FROM fews j) AND coalesce(i.v, 1) <
(SELECT 2 * sum(p.v) FROM outers p WHERE p.k = i.k)) AND s IS NOT NULL;
SELECT k FROM outers o WHERE NOT EXISTS (SELECT 1 FROM nones e WHERE e.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT max(k) FROM nones e);
SELECT k FROM outers o WHERE NOT EXISTS (SELECT max(k) FROM nones e);
SELECT k FROM outers o WHERE EXISTS (SELECT max(e.k) FROM nones e WHERE e.v = o.v);
SELECT k FROM outers o WHERE v IN (SELECT max(e.v) FROM nones e WHERE e.k = o.k) IS NULL;
SELECT k FROM outers o WHERE (v NOT IN (SELECT max(e.v) FROM nones e WHERE e.k = o.k)) IS NULL;
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) OR v > 40;
SELECT k FROM outers o WHERE NOT (EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) AND v > 40);
SELECT k, CASE WHEN EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k HAVING count(*) > 1) THEN 'many' WHEN 0 IN
(SELECT count(*) FROM inners i WHERE i.k = o.k) THEN 'none' ELSE 'one' END AS x FROM outers o;
SELECT s, count(*) FROM outers o GROUP BY s HAVING EXISTS (SELECT count(*) FROM inners i WHERE i.s = o.s);
SELECT s, count(*) FROM outers o GROUP BY s HAVING count(*) IN (SELECT count(*) FROM inners i WHERE i.s = o.s);
SELECT s, count(*) FROM outers o GROUP BY s HAVING count(*) > (SELECT count(*) FROM inners i WHERE i.s = o.s);
SELECT s, count(*) FROM outers o GROUP BY s HAVING max(v) >= ALL (SELECT i.v FROM inners i WHERE i.s = o.s);
SELECT o.k, j.v FROM outers o JOIN fews j ON o.k = j.k AND EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k);
SELECT o.k, j.v FROM outers o JOIN fews j ON EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k AND i.v <> j.v);
SELECT o.k, j.v FROM outers o LEFT JOIN fews j ON o.k = j.k AND EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k);
SELECT o.k, j.v FROM outers o LEFT JOIN fews j ON o.k = j.k AND EXISTS (SELECT 1 FROM inners i WHERE i.k = j.k);
SELECT o.k, j.v FROM outers o LEFT JOIN fews j ON o.k = j.k AND j.v > (SELECT max(i.v) FROM inners i WHERE i.k = j.k);
SELECT o.k, j.v FROM outers o LEFT JOIN fews j ON o.k = j.k AND j.v > (SELECT min(i.v) FROM inners i);
SELECT o.k, j.v FROM outers o FULL JOIN fews j ON o.k = j.k AND j.k IN (SELECT i.k FROM inners i);
SELECT o.k, j.v FROM outers o RIGHT JOIN fews j ON o.k = j.k AND o.k NOT IN (SELECT i.k FROM inners i WHERE i.v = o.v);
-- refused: a subquery of both tables of an outer join
SELECT o.k, j.v FROM outers o LEFT JOIN fews j ON EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k AND i.v = j.v);
SELECT k, (SELECT count(*) FROM (SELECT i.k FROM inners i WHERE i.k = o.k UNION SELECT j.k FROM fews j WHERE j.k =
o.k) z) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.v FROM inners i WHERE i.k = o.k UNION ALL SELECT 1) z) AS x FROM outers o;
SELECT k, v IN (SELECT i.v FROM inners i WHERE i.k = o.k UNION ALL SELECT j.v FROM fews j WHERE j.k = o.k) AS x FROM
outers o;
SELECT k, EXISTS (SELECT i.k FROM inners i WHERE i.v > o.v INTERSECT SELECT j.k FROM fews j WHERE j.v > o.v) AS x FROM
outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.k FROM inners i WHERE i.k <> o.k EXCEPT SELECT j.k FROM fews j WHERE j.k =
o.k) z) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.k FROM inners i EXCEPT SELECT j.k FROM fews j WHERE j.k = o.k) z) AS x FROM
outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.k FROM inners i EXCEPT ALL SELECT j.k FROM fews j WHERE j.k = o.k) z) AS x
FROM outers o;
SELECT k, (SELECT count(j.v) FROM inners i LEFT JOIN fews j ON i.k = j.k AND j.v > o.v) AS x FROM outers o;
SELECT k, (SELECT count(j.v) FROM inners i LEFT JOIN (SELECT * FROM fews j WHERE j.k = o.k) j ON i.k = j.k) AS x FROM
outers o;
SELECT k, (SELECT count(*) FROM (SELECT * FROM inners i WHERE i.k = o.k) i FULL JOIN (SELECT * FROM fews j WHERE j.k =
o.k) j ON i.k = j.k) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT * FROM inners i WHERE i.k = o.k) i JOIN (SELECT * FROM fews j WHERE j.k >=
o.k) j ON i.k = j.k) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT * FROM inners i WHERE i.k = o.k) i RIGHT JOIN fews j ON i.k = j.k) AS x FROM
outers o;
SELECT k, (SELECT sum(l.n) FROM inners i, LATERAL (SELECT count(*) n FROM fews j WHERE j.k = i.k AND j.v > o.v) l) AS
x FROM outers o;
SELECT k, (SELECT sum(l.n) FROM inners i LEFT JOIN LATERAL (SELECT j.v n FROM fews j WHERE j.k = o.k LIMIT 1) l ON i.k
= o.k) AS x FROM outers o;
SELECT k, (SELECT z.v FROM (SELECT DISTINCT ON (i.k) i.k, i.v FROM inners i WHERE i.k = o.k ORDER BY i.k, i.v DESC) z)
AS x FROM outers o;
SELECT DISTINCT ON (k) k, EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) AS x FROM outers o ORDER BY k, v;
SELECT k, sum((SELECT count(*) FROM inners i WHERE i.k = o.k)) OVER (ORDER BY v) AS x FROM outers o;
SELECT k, rank() OVER (ORDER BY (SELECT count(*) FROM inners i WHERE i.k = o.k)) AS x FROM outers o;
SELECT k, max((SELECT max(i.v) FROM inners i WHERE i.k = o.k)) FROM outers o GROUP BY ROLLUP (k);
SELECT (SELECT count(*) FROM inners i WHERE i.k = o.k) AS n, count(*) FROM outers o GROUP BY 1;
SELECT k FROM outers o ORDER BY (SELECT count(*) FROM inners i WHERE i.k = o.k), k, v LIMIT 2;
SELECT k FROM outers o WHERE (SELECT count(*) FROM inners i WHERE i.k = o.k) = (SELECT count(*) FROM fews j WHERE j.k
= o.k);
SELECT k FROM outers o WHERE (k, v) IN (SELECT i.k, max(i.v) FROM inners i WHERE i.s = o.s GROUP BY i.k);
SELECT k FROM outers o WHERE (k, 0) IN (SELECT o.k, count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE (k, v) NOT IN (SELECT max(i.k), max(i.v) FROM inners i WHERE i.s = o.s);
SELECT k FROM outers o WHERE ROW(k, v) = (SELECT max(i.k), max(i.v) FROM inners i WHERE i.s = o.s);
SELECT k, (SELECT count(*) FROM generate_series(1, o.k) g) AS x FROM outers o;
SELECT k, EXISTS (SELECT count(*) FROM generate_series(1, o.k) g) AS x FROM outers o;
SELECT k, EXISTS (VALUES (o.k)) AS x FROM outers o;
SELECT k, v IN (VALUES (o.k), (o.v)) AS x FROM outers o;
VALUES ((SELECT 1));
VALUES ((SELECT max(v) FROM inners i)), (2);
SELECT k FROM outers o WHERE v IN (VALUES ((SELECT max(v) FROM outers o)), (10));
SELECT k FROM outers o WHERE v IN (VALUES ((SELECT max(i.v) FROM inners i WHERE i.k = o.k)), (10));
WITH q AS (SELECT max(v) m FROM outers o) VALUES ((SELECT m FROM q)), (1);
SELECT * FROM (VALUES (1, (SELECT max(v) FROM outers o)), (2, NULL)) t (a, b);
SELECT * FROM outers o, LATERAL (VALUES (o.k), ((SELECT count(*) FROM inners i WHERE i.k = o.k))) t (a);
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT (SELECT max(n) + 1 FROM t WHERE n < 5)) SELECT * FROM t;
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < (SELECT count(*) FROM inners i)) SELECT *
FROM t;
-- refused: columns of a recursive query
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k =
t.n) AND n < 5) SELECT * FROM t;
-- refused: WITH RECURSIVE for each outer row
SELECT k, (WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < o.k) SELECT count(*) FROM t) AS x
FROM outers o;
SELECT k, (SELECT i.v FROM inners i WHERE i.k = o.k ORDER BY i.v LIMIT 1 OFFSET 1) AS x FROM outers o;
SELECT k, (SELECT first_value(i.v) OVER (ORDER BY i.v DESC) FROM inners i WHERE i.k = o.k LIMIT 1) AS x FROM outers o;
SELECT k FROM outers o WHERE k = ANY (SELECT count(*) FROM inners i WHERE i.k = o.k) OR NOT EXISTS (SELECT 1 FROM
inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE NOT k = ALL (SELECT max(i.k) FROM inners i WHERE i.v = o.v);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT count(*) n FROM inners i WHERE i.k = o.k) z WHERE z.n > 0);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT count(*) n FROM inners i WHERE i.k = o.k) z);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT count(*) n FROM inners i WHERE i.k = o.k) z, fews j);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT count(*) n FROM inners i WHERE i.k = o.k) z LEFT JOIN nones
e ON true);
SELECT k FROM outers o WHERE 1 > (SELECT count(*) FROM (SELECT DISTINCT i.s FROM inners i WHERE i.k = o.k) z);
SELECT k FROM outers o WHERE EXISTS (SELECT DISTINCT count(*) FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k ORDER BY 1);
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) OVER () FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT sum(count(*)) OVER () FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i HAVING count(*) > o.k);
SELECT k FROM outers o WHERE v > (SELECT avg(v) FROM inners i WHERE i.k = o.k OR i.v < o.v);
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k < o.k);
SELECT k FROM outers o WHERE 0 IN (SELECT count(*) FROM inners i WHERE i.k < o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k GROUP BY i.s HAVING count(*) > 1);
SELECT k, (SELECT EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k)) AS x FROM outers o;
SELECT k, (SELECT (SELECT count(*) FROM inners i WHERE i.k = o.k)) AS x FROM outers o;
SELECT k, (SELECT (SELECT count(*) FROM fews j WHERE j.k = i.k AND j.v > o.v) FROM inners i WHERE i.v = o.v) AS x FROM
outers o;
SELECT k, (SELECT max((SELECT count(*) FROM fews j WHERE j.k = i.k AND j.v > o.v)) FROM inners i WHERE i.k = o.k) AS x
FROM outers o;
SELECT k, ARRAY(SELECT i.v FROM inners i WHERE i.k = o.k ORDER BY i.v) AS x FROM outers o;
SELECT k, coalesce((SELECT sum(v) FROM inners i WHERE i.k = o.k), -1) AS x FROM outers o;
SELECT k, (SELECT coalesce(sum(v), -1) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, (SELECT count(*) FILTER (WHERE i.v > o.v) FROM inners i) AS x FROM outers o;
SELECT k, (SELECT sum(i.v + o.v) FROM inners i WHERE i.k = o.k) AS x FROM outers o;
SELECT k, EXISTS (SELECT sum(i.v + o.v) FROM inners i) AS x FROM outers o;
SELECT x.k FROM (SELECT k, v FROM outers o WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k)) x WHERE NOT
EXISTS (SELECT count(*) FROM fews j WHERE j.k = x.k HAVING count(*) > 0);
SELECT k FROM outers o WHERE EXISTS (TABLE nones);
SELECT k FROM outers o WHERE NOT EXISTS (SELECT FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT FROM inners i WHERE i.k = o.k HAVING count(*) = 0);
SELECT k, (SELECT count(*) FROM (SELECT i.k + o.k AS z FROM inners i GROUP BY ROLLUP (i.k + o.k)) q) AS x FROM outers
o;
SELECT k, (SELECT count(*) FROM (SELECT grouping(i.s, i.k) g FROM inners i WHERE i.v > o.v GROUP BY GROUPING SETS
((i.s), (i.k))) q) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT 1 AS one FROM inners i WHERE i.k = o.k) z) AS x FROM outers o;
SELECT k, (SELECT count(*) FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z) AS x FROM outers o;
SELECT k, (SELECT sum(z.v) FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z) AS x FROM outers o;
SELECT k, (SELECT sum(z.v) FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z WHERE z.v > 1) AS x FROM outers o;
SELECT k, (SELECT sum(z.v) FROM (SELECT i.v, i.k FROM inners i WHERE i.k = o.k) z WHERE z.v > 1) AS x FROM outers o;
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z WHERE z.v > 0);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z);
SELECT k FROM outers o WHERE v IN (SELECT z.v FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z);
SELECT k FROM outers o WHERE v IN (SELECT z.v + 0 FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z WHERE z.v > 0);
SELECT k FROM outers o WHERE v > (SELECT max(z.v) FROM (SELECT i.v FROM inners i WHERE i.k = o.k) z);
-- refused: columns of a recursive query
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5 AND EXISTS (SELECT 1 FROM inners i WHERE
i.k = t.n LIMIT 1)) SELECT * FROM t;
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5 AND EXISTS (SELECT 1 FROM inners i WHERE
i.k = t.n)) SELECT * FROM t;
-- refused: columns of a recursive query
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + (SELECT i.k FROM inners i WHERE i.k = t.n LIMIT 1) FROM t WHERE
n < 5) SELECT * FROM t;
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + (SELECT count(*)::int FROM inners i WHERE i.k = t.n) + 1 FROM t
WHERE n < 5) SELECT * FROM t;
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT l.m FROM t, LATERAL (SELECT t.n + 1 AS m WHERE t.n < 5) l) SELECT *
FROM t;
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT a.n + b.n FROM t a, t b WHERE a.n < 5) SELECT * FROM t;
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i LEFT JOIN fews j ON i.k = j.k WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i LEFT JOIN fews j ON i.k = j.k AND j.k = o.k WHERE j.k IS
NULL);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i RIGHT JOIN fews j ON i.k = j.k WHERE j.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM (SELECT * FROM inners i WHERE i.k = o.k) i RIGHT JOIN fews j ON i.k
= j.k);
SELECT k FROM outers o WHERE k IN (SELECT j.k FROM (SELECT * FROM inners i WHERE i.k = o.k) i RIGHT JOIN fews j ON i.k
= j.k);
SELECT k FROM outers o WHERE EXISTS (SELECT i.k FROM inners i EXCEPT SELECT j.k FROM fews j WHERE j.k = o.k);
SELECT k FROM outers o WHERE 1 IN (SELECT i.k FROM inners i EXCEPT SELECT i.k FROM inners i WHERE i.k = o.k);
SELECT k FROM outers o WHERE EXISTS (SELECT i.k FROM inners i WHERE i.k = o.k EXCEPT SELECT j.k FROM fews j);
SELECT k FROM outers o WHERE EXISTS (SELECT i.k FROM inners i WHERE i.k = o.k INTERSECT SELECT j.k FROM fews j);
SELECT k FROM outers o WHERE k IN (SELECT i.k FROM inners i INTERSECT SELECT j.k FROM fews j WHERE j.k = o.k);
SELECT o.k, l.n FROM outers o, LATERAL (SELECT count(*) n FROM (SELECT * FROM inners i WHERE i.k = o.k) i RIGHT JOIN
fews j ON i.k = j.k) l;
SELECT o.k, l.n FROM outers o, LATERAL (SELECT count(*) n FROM inners i WHERE i.k = o.k GROUP BY ROLLUP (i.s)) l;
SELECT o.k, l.n FROM outers o, LATERAL (SELECT count(*) n FROM inners i WHERE i.k = o.k GROUP BY ()) l;
SELECT o.k, l.n FROM outers o, LATERAL (SELECT i.k n FROM inners i EXCEPT SELECT j.k FROM fews j WHERE j.k = o.k) l;
SELECT o.k, l.n FROM outers o LEFT JOIN LATERAL (SELECT i.k n FROM inners i EXCEPT SELECT j.k FROM fews j WHERE j.k =
o.k) l ON l.n > 1;
SELECT o.k, l.n FROM outers o, LATERAL (SELECT i.k n FROM inners i UNION SELECT j.k FROM fews j WHERE j.k = o.k) l;
SELECT o.k, l.n FROM outers o, LATERAL (SELECT m.n FROM inners i, LATERAL (SELECT i.v + o.v AS n) m WHERE i.k = o.k) l;
SELECT o.k, l.n FROM outers o, LATERAL (SELECT EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) AS n) l;
SELECT k FROM outers o WHERE EXISTS (SELECT 1 WHERE o.k > 1);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 WHERE o.k > 1 GROUP BY ());
SELECT k FROM outers o WHERE EXISTS (SELECT count(*) WHERE o.k > 1 HAVING count(*) = 0);
SELECT k FROM outers o WHERE EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k AND EXISTS (SELECT 1 FROM fews j WHERE j.k
= i.k AND j.k = o.k));
SELECT k FROM outers o WHERE NOT EXISTS (SELECT 1 FROM inners i WHERE i.k = o.k AND i.v NOT IN (SELECT j.v FROM fews j
WHERE j.k = o.k));
SELECT k FROM outers o WHERE k > ALL (SELECT i.k FROM inners i WHERE i.v = ANY (SELECT j.v FROM fews j WHERE j.k =
o.k));
SELECT k FROM outers o WHERE (SELECT max(i.v) FROM inners i WHERE i.k IN (SELECT j.k FROM fews j WHERE j.v > o.v)) IS
NULL;
SELECT k FROM outers o WHERE (SELECT bool_and(EXISTS (SELECT 1 FROM fews j WHERE j.k = i.k AND j.v > o.v)) FROM inners
i WHERE i.k = o.k);
SELECT k FROM outers o ORDER BY EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k HAVING count(*) > 1), k, v;
SELECT DISTINCT EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) FROM outers o;
SELECT EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) AS x, count(*) FROM outers o GROUP BY 1;
SELECT count(*) FILTER (WHERE EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k)) FROM outers o;
SELECT sum(CASE WHEN 0 IN (SELECT count(*) FROM inners i WHERE i.k = o.k) THEN 1 END) FROM outers o;
SELECT k, EXISTS (SELECT count(*) FROM inners i WHERE i.k = o.k) IN (SELECT true) AS x FROM outers o;
SELECT k, (k, v) IN (SELECT i.k, i.v FROM inners i) AS x FROM outers o;
SELECT k, (k, v) IN (SELECT max(i.k), max(i.v) FROM inners i WHERE i.s = o.s) AS x FROM outers o;
SELECT k, (k, v) = ANY (SELECT i.k, i.v FROM inners i WHERE i.s = o.s) AS x FROM outers o;
SELECT k FROM outers o WHERE (k, v) = (SELECT max(i.k), max(i.v) FROM inners i WHERE i.s = o.s);
SELECT k FROM outers o WHERE k = (SELECT i.k FROM inners i WHERE i.k = o.k GROUP BY i.k);
SELECT k FROM outers o WHERE k IN (SELECT i.k FROM inners i WHERE i.k = o.k GROUP BY i.k HAVING count(*) > 1);
SELECT k FROM outers t WHERE EXISTS (SELECT 1 FROM outers u WHERE u.k = t.k AND EXISTS (SELECT count(*) FROM outers t
WHERE t.k = u.v HAVING count(*) = 0));
SELECT t.k FROM outers t WHERE t.v = (SELECT max(t.v) FROM inners t WHERE t.k = (SELECT max(t.k) FROM fews t));
SELECT k, (SELECT count(*) FROM inners o WHERE o.k = (SELECT max(j.k) FROM fews j WHERE j.k = o.k)) AS x FROM outers o;

-- The rows of ARRAY(SELECT …) are those of its own query, whatever columns they have.
SELECT k, ARRAY(SELECT o.k) AS x FROM outers o;
SELECT k, ARRAY(SELECT o.k FROM inners i WHERE i.k = o.k) AS x, ARRAY(SELECT o.k ORDER BY o.k) AS y FROM outers o;
