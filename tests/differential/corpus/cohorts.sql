-- Whole questions about hierarchies, cohorts, gaps and islands, sessions and funnels.

-- Hierarchies
WITH RECURSIVE chain AS (
  SELECT id, name, manager_id, name AS path FROM employees WHERE id = 1
  UNION ALL SELECT e.id, e.name, e.manager_id, c.path || ' > ' || e.name FROM employees e
    JOIN chain c ON e.manager_id = c.id)
SELECT id, path FROM chain WHERE id > 30 ORDER BY id;
WITH RECURSIVE up AS (
  SELECT id, manager_id, 0 AS level FROM employees WHERE id = 40
  UNION ALL SELECT e.id, e.manager_id, u.level + 1 FROM employees e JOIN up u ON e.id = u.manager_id)
SELECT u.level, e.name, e.dept FROM up u JOIN employees e USING (id) ORDER BY u.level;
WITH RECURSIVE below AS (
  SELECT id AS boss, id FROM employees
  UNION ALL SELECT b.boss, e.id FROM below b JOIN employees e ON e.manager_id = b.id)
SELECT b.boss, count(*) - 1 AS reports, sum(e.salary) AS cost FROM below b JOIN employees e ON e.id = b.id
GROUP BY b.boss HAVING count(*) > 4 ORDER BY b.boss;
SELECT m.id, m.name, count(e.id) AS direct_reports, round(avg(e.salary), 0) AS average_salary FROM employees m
JOIN employees e ON e.manager_id = m.id
GROUP BY m.id, m.name ORDER BY direct_reports DESC, m.id LIMIT 8;
WITH RECURSIVE t AS (
  SELECT id, ARRAY[id] AS path FROM employees WHERE manager_id IS NULL
  UNION ALL SELECT e.id, t.path || e.id FROM employees e JOIN t ON e.manager_id = t.id)
SELECT repeat('  ', cardinality(path) - 1) || id AS outline FROM t ORDER BY path LIMIT 20;
SELECT e.id, e.salary, m.salary AS manager_salary FROM employees e JOIN employees m ON m.id = e.manager_id
WHERE e.salary > m.salary ORDER BY e.id;

-- Cohorts and retention
WITH first_order AS (SELECT customer_id, min(order_date) AS first FROM orders WHERE customer_id IS NOT NULL
  GROUP BY customer_id)
SELECT to_char(date_trunc('quarter', first), 'YYYY-"Q"Q') AS cohort, count(*) AS customers FROM first_order GROUP BY 1
ORDER BY 1;
WITH f AS (SELECT customer_id, date_trunc('quarter', min(order_date)) AS cohort FROM orders
  WHERE customer_id IS NOT NULL GROUP BY customer_id),
a AS (SELECT DISTINCT o.customer_id, f.cohort, (extract(year FROM o.order_date) - extract(year FROM f.cohort)) * 4
  + extract(quarter FROM o.order_date) - extract(quarter FROM f.cohort) AS age FROM orders o JOIN f USING (customer_id))
SELECT cohort::date, age, count(*) AS active FROM a WHERE cohort < '2022-10-01' GROUP BY cohort, age
ORDER BY cohort, age;
WITH d AS (SELECT DISTINCT user_id, occurred_at::date AS day FROM events WHERE user_id IS NOT NULL)
SELECT a.day, count(*) AS users, count(b.user_id) AS back_next_day,
  round(100.0 * count(b.user_id) / count(*), 1) AS percent
FROM d a LEFT JOIN d b ON b.user_id = a.user_id AND b.day = a.day + 1 GROUP BY a.day ORDER BY a.day;
SELECT orders, count(*) AS customers FROM (SELECT customer_id, count(*) AS orders FROM orders
  WHERE customer_id IS NOT NULL GROUP BY customer_id) t GROUP BY orders ORDER BY orders;
SELECT extract(year FROM signup_date)::int AS year, count(*) AS signups, count(*) FILTER (WHERE active) AS still_active,
       round(avg(active::int) * 100, 1) AS percent FROM customers GROUP BY 1 ORDER BY 1;
SELECT c.customer_id, min(o.order_date) - c.signup_date AS days_to_first_order FROM customers c
JOIN orders o USING (customer_id)
GROUP BY c.customer_id, c.signup_date ORDER BY 2, 1 LIMIT 10;
SELECT customer_id, order_date, order_date - lag(order_date) OVER (PARTITION BY customer_id
  ORDER BY order_date, order_id) AS days_since
FROM orders WHERE customer_id BETWEEN 20 AND 23 ORDER BY customer_id, order_date, order_id;

-- Gaps and islands
WITH d AS (SELECT DISTINCT order_date AS d FROM orders WHERE order_date < '2022-03-15'),
g AS (SELECT d, d - (row_number() OVER (ORDER BY d))::int AS island FROM d)
SELECT min(d) AS first, max(d) AS last, count(*) AS days FROM g GROUP BY island ORDER BY first;
SELECT d AS after, next - d AS gap FROM (SELECT DISTINCT order_date AS d,
  lead(order_date) OVER (ORDER BY order_date) AS next FROM orders) t
WHERE next - d > 1 ORDER BY gap DESC, d LIMIT 10;
WITH x (n) AS (VALUES (1), (2), (3), (5), (6), (9)), g AS (SELECT n, n - row_number() OVER (ORDER BY n) AS grp FROM x)
SELECT min(n) || CASE WHEN max(n) > min(n) THEN '-' || max(n) ELSE '' END AS range FROM g GROUP BY grp ORDER BY min(n);
WITH x (n, on_off) AS (VALUES (1, true), (2, true), (3, false), (4, true), (5, false), (6, false)),
c AS (SELECT *, CASE WHEN on_off IS DISTINCT FROM lag(on_off) OVER (ORDER BY n) THEN 1 ELSE 0 END AS changed FROM x),
s AS (SELECT *, sum(changed) OVER (ORDER BY n) AS streak FROM c)
SELECT streak, on_off, min(n) AS first, count(*) AS length FROM s GROUP BY streak, on_off ORDER BY streak;
SELECT n AS free_id FROM generate_series(1, 15) AS n
LEFT JOIN (VALUES (1), (2), (4), (8), (15)) AS used (id) ON used.id = n WHERE used.id IS NULL ORDER BY n;
WITH late AS (SELECT day, count(*) FILTER (WHERE dep_delay > 60) > 5 AS bad FROM flights WHERE month = 7 GROUP BY day),
g AS (SELECT day, bad, day - row_number() OVER (PARTITION BY bad ORDER BY day) AS island FROM late)
SELECT min(day) AS first, max(day) AS last, count(*) AS bad_days FROM g WHERE bad GROUP BY island ORDER BY first;

-- Sessions
WITH e AS (SELECT user_id, occurred_at, CASE WHEN occurred_at - lag(occurred_at) OVER (PARTITION BY user_id
  ORDER BY occurred_at) < interval '12 hours'
  THEN 0 ELSE 1 END AS starts FROM events WHERE user_id IN (1, 2, 3)),
s AS (SELECT user_id, occurred_at, sum(starts) OVER (PARTITION BY user_id ORDER BY occurred_at) AS session FROM e)
SELECT user_id, session, count(*) AS events, max(occurred_at) - min(occurred_at) AS length FROM s
GROUP BY user_id, session ORDER BY user_id, session;
SELECT session_id, count(*) AS events, min(occurred_at) AS started, max(occurred_at) - min(occurred_at) AS length
FROM events
WHERE session_id IS NOT NULL GROUP BY session_id ORDER BY started LIMIT 8;
SELECT round(avg(n), 2) AS events_per_session, max(n) AS longest
FROM (SELECT session_id, count(*) AS n FROM events WHERE session_id IS NOT NULL GROUP BY session_id) t;
SELECT kind, next_kind, count(*) AS n FROM (SELECT kind,
  lead(kind) OVER (PARTITION BY session_id ORDER BY occurred_at) AS next_kind FROM events
  WHERE session_id IS NOT NULL) t
WHERE next_kind IS NOT NULL GROUP BY kind, next_kind ORDER BY n DESC, kind, next_kind LIMIT 12;
SELECT session_id, string_agg(kind, ' > ' ORDER BY occurred_at) AS path FROM events WHERE session_id < 5000000005
GROUP BY session_id ORDER BY session_id;

-- Funnels and conversion
SELECT count(DISTINCT user_id) FILTER (WHERE kind = 'view') AS viewed,
  count(DISTINCT user_id) FILTER (WHERE kind = 'click') AS clicked,
       count(DISTINCT user_id) FILTER (WHERE kind = 'purchase') AS bought FROM events;
WITH u AS (SELECT user_id, min(occurred_at) FILTER (WHERE kind = 'view') AS viewed,
  min(occurred_at) FILTER (WHERE kind = 'click') AS clicked FROM events
  WHERE user_id IS NOT NULL GROUP BY user_id)
SELECT count(*) AS users, count(viewed) AS viewed, count(clicked) FILTER (WHERE clicked > viewed) AS clicked_after
FROM u;
SELECT payload::jsonb #>> '{user,plan}' AS plan, count(*) AS events, count(DISTINCT user_id) AS users FROM events
GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT payload::json ->> 'page' AS page, count(*) AS n, round(avg((payload::json ->> 'ms')::int), 2) AS ms FROM events
WHERE payload IS NOT NULL GROUP BY 1 ORDER BY 1;
SELECT kind, count(*) AS n, count(amount) AS with_amount, round(sum(amount)::numeric, 2) AS amount,
  max(duration_ms) AS slowest FROM events GROUP BY kind ORDER BY kind;
