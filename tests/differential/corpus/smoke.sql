-- One statement of each sort, so that the harness itself is seen to work.

SELECT 1 AS one, 'two' AS two, true AS three, NULL AS four;
SELECT count(*) FROM flights;
SELECT carrier, count(*) FROM flights GROUP BY carrier ORDER BY count(*) DESC, carrier;
SELECT * FROM t_types ORDER BY id;
SELECT * FROM floats;
SELECT * FROM arrays;
SELECT * FROM employees_csv ORDER BY id;
SELECT origin, avg(dep_delay) FROM flights GROUP BY origin;
SELECT f.carrier, a.name, max(f.distance) AS far FROM flights f JOIN airlines a ON a.carrier = f.carrier GROUP BY 1, 2;
SELECT time_hour::date AS day, count(*) FROM flights WHERE month = 2 GROUP BY 1 ORDER BY 1;
SELECT i / 2, i % 3, -i / 2 FROM t_types WHERE abs(i) < 1000000;
SELECT id, d::text FROM floats;
SELECT sum(i), sum(bi), avg(si), sum(n) FROM t_types WHERE id > 5;
SELECT i + i FROM t_types;
SELECT 2147483647 + 1;
SELECT 'abc'::integer;
SELECT no_such_column FROM flights;
SELECT 1 / 0;
SELECT to_char(time_hour, 'YYYY-MM') AS month, count(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT ordered_at - interval '1 day 02:00' FROM orders ORDER BY order_id LIMIT 5;
SELECT ordered_at - timestamptz '2022-01-01 00:00+00' FROM orders ORDER BY order_id LIMIT 5;
SELECT id, j::jsonb FROM jsons;
SELECT array_agg(id ORDER BY id) FROM employees WHERE id < 5;
SELECT row_number() OVER (PARTITION BY dept ORDER BY salary DESC, id) AS place, name FROM employees;
WITH RECURSIVE tree AS (
    SELECT id, name, 0 AS depth FROM employees WHERE manager_id IS NULL
    UNION ALL
    SELECT e.id, e.name, tree.depth + 1 FROM employees e JOIN tree ON tree.id = e.manager_id
)
SELECT depth, count(*) FROM tree GROUP BY depth ORDER BY depth;
