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

-- Users and what they did next
SELECT user_id, count(*) AS events, count(DISTINCT kind) AS kinds, min(occurred_at) AS first_seen,
  max(occurred_at) AS last_seen
FROM events WHERE user_id IS NOT NULL GROUP BY user_id ORDER BY events DESC, user_id LIMIT 10;
SELECT user_id, kind, occurred_at, occurred_at - lag(occurred_at) OVER w AS since_last, lead(kind) OVER w AS next_kind
FROM events WHERE user_id = 7 WINDOW w AS (ORDER BY occurred_at) ORDER BY occurred_at;
SELECT user_id, first_value(kind) OVER w AS first_kind, last_value(kind) OVER w AS last_kind,
  nth_value(kind, 2) OVER w AS second_kind
FROM events WHERE user_id IN (4, 5) WINDOW w AS (PARTITION BY user_id ORDER BY occurred_at
  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY user_id, occurred_at LIMIT 25;
SELECT u.user_id FROM (SELECT DISTINCT user_id FROM events WHERE kind = 'view') u
WHERE EXISTS (SELECT 1 FROM events e WHERE e.user_id = u.user_id AND e.kind = 'click')
  AND NOT EXISTS (SELECT 1 FROM events e WHERE e.user_id = u.user_id AND e.kind = 'purchase') ORDER BY u.user_id;
SELECT occurred_at::date AS day, count(DISTINCT user_id) AS active,
  count(DISTINCT user_id) FILTER (WHERE kind IN ('cart', 'purchase')) AS shopping FROM events GROUP BY 1 ORDER BY 1;
SELECT d.day, count(DISTINCT e.user_id) AS active_in_two_days
FROM (SELECT DISTINCT occurred_at::date AS day FROM events) d
JOIN events e ON e.occurred_at >= d.day::timestamptz - interval '1 day'
  AND e.occurred_at < d.day::timestamptz + interval '1 day'
GROUP BY d.day ORDER BY d.day;
WITH firsts AS (SELECT user_id, min(occurred_at)::date AS first_day FROM events WHERE user_id IS NOT NULL
  GROUP BY user_id)
SELECT e.occurred_at::date AS day, count(*) FILTER (WHERE f.first_day = e.occurred_at::date) AS of_new_users,
  count(*) FILTER (WHERE f.first_day < e.occurred_at::date) AS of_old_users FROM events e JOIN firsts f USING (user_id)
  GROUP BY 1 ORDER BY 1;
SELECT kind, count(*) AS n, round(avg(extract(epoch FROM received_at - occurred_at AT TIME ZONE 'UTC')),
  3) AS seconds_late FROM events GROUP BY kind ORDER BY kind;
SELECT session_id, max(extract(epoch FROM occurred_at - before)) AS longest_pause FROM (
  SELECT session_id, occurred_at, lag(occurred_at) OVER (PARTITION BY session_id ORDER BY occurred_at) AS before
    FROM events) t
WHERE session_id IS NOT NULL GROUP BY session_id ORDER BY session_id LIMIT 6;

-- Streaks, overlaps and intervals
WITH s (who, from_day, to_day) AS (VALUES ('a', date '2023-01-01', date '2023-01-10'),
  ('b', date '2023-01-05', date '2023-01-07'),
  ('c', date '2023-01-08', date '2023-01-20'), ('d', date '2023-02-01', date '2023-02-02'))
SELECT x.who, y.who AS overlaps_with FROM s x
JOIN s y ON x.who < y.who AND x.from_day <= y.to_day AND y.from_day <= x.to_day ORDER BY 1, 2;
WITH s (from_day, to_day) AS (VALUES (date '2023-01-01', date '2023-01-10'), (date '2023-01-05', date '2023-01-12'),
  (date '2023-01-20', date '2023-01-25'), (date '2023-01-26', date '2023-01-27')),
m AS (SELECT *, max(to_day) OVER (ORDER BY from_day,
  to_day ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM s),
g AS (SELECT *, count(*) FILTER (WHERE reached IS NULL OR from_day > reached + 1) OVER (ORDER BY from_day,
  to_day) AS island FROM m)
SELECT min(from_day) AS from_day, max(to_day) AS to_day, max(to_day) - min(from_day) + 1 AS days FROM g GROUP BY island
ORDER BY island;
SELECT (date '2023-01-01', date '2023-01-10') OVERLAPS (date '2023-01-10', date '2023-01-20') AS touching,
  (date '2023-01-01', interval '10 days') OVERLAPS (date '2023-01-10', date '2023-01-20') AS crossing;
SELECT d.day::date AS day, count(s.who) AS open
FROM generate_series(date '2023-01-01', date '2023-01-06', interval '1 day') AS d (day)
LEFT JOIN (VALUES ('a', date '2023-01-01', date '2023-01-03'), ('b', date '2023-01-03', date '2023-01-05')) AS s (who,
  from_day, to_day)
  ON d.day BETWEEN s.from_day AND s.to_day GROUP BY d.day ORDER BY d.day;
SELECT customer_id, count(*) AS orders, max(gap) AS longest_gap, round(avg(gap), 1) AS average_gap FROM (
  SELECT customer_id, order_date - lag(order_date) OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS gap
    FROM orders) t
WHERE customer_id BETWEEN 1 AND 15 GROUP BY customer_id ORDER BY customer_id;
WITH filled AS (SELECT n, v, count(v) OVER (ORDER BY n) AS grp
  FROM (VALUES (1, 10), (2, NULL), (3, NULL), (4, 20), (5, NULL)) AS x (n, v))
SELECT n, v, max(v) OVER (PARTITION BY grp) AS carried_forward FROM filled ORDER BY n;
WITH r (d, rate) AS (VALUES (date '2023-01-01', 1.10), (date '2023-01-05', 1.20), (date '2023-01-09', 1.15))
SELECT x::date AS day, (SELECT rate FROM r WHERE r.d <= x ORDER BY r.d DESC LIMIT 1) AS rate
FROM generate_series(timestamp '2023-01-03', timestamp '2023-01-10', interval '2 days') AS x ORDER BY x;

-- Graphs and bills of material
WITH RECURSIVE edges (a, b, miles) AS (SELECT DISTINCT origin, dest, distance FROM flights
  WHERE dest IN ('LAX', 'SFO', 'ORD')),
best AS (SELECT b, min(miles) AS miles FROM edges GROUP BY b) SELECT b AS dest, miles FROM best ORDER BY b;
WITH RECURSIVE parts (part, of_part, n) AS (VALUES ('bike', NULL, 1), ('wheel', 'bike', 2), ('spoke', 'wheel', 32),
  ('frame', 'bike', 1), ('bolt', 'frame', 8), ('bolt', 'wheel', 4)),
b AS (SELECT part, n FROM parts WHERE of_part IS NULL UNION ALL SELECT p.part, p.n * b.n FROM parts p
  JOIN b ON p.of_part = b.part)
SELECT part, sum(n) AS needed FROM b GROUP BY part ORDER BY part;
WITH RECURSIVE edge (a, b) AS (VALUES (1, 2), (2, 3), (3, 1), (3, 4)),
walk AS (SELECT a AS start, b, ARRAY[a, b] AS path FROM edge WHERE a = 1
  UNION ALL SELECT w.start, e.b, w.path || e.b FROM walk w JOIN edge e ON e.a = w.b WHERE NOT e.b = ANY (w.path))
SELECT path, cardinality(path) AS length FROM walk ORDER BY length, path;
WITH RECURSIVE t AS (
  SELECT id, manager_id, salary AS total FROM employees e
    WHERE NOT EXISTS (SELECT 1 FROM employees x WHERE x.manager_id = e.id)
  UNION ALL SELECT e.id, e.manager_id, t.total FROM employees e JOIN t ON t.manager_id = e.id)
SELECT id, sum(total) AS salaries_of_leaves, count(*) AS leaves FROM t WHERE id <= 6 GROUP BY id ORDER BY id;
WITH RECURSIVE months (m) AS (SELECT date '2022-11-01' UNION ALL SELECT (m + interval '1 month')::date FROM months
  WHERE m < '2023-02-01')
SELECT m, (m + interval '1 month - 1 day')::date AS last_day, count(o.order_id) AS orders
FROM months LEFT JOIN orders o ON o.order_date >= m AND o.order_date < m + interval '1 month' GROUP BY m ORDER BY m;
