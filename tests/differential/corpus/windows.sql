-- Window functions and frames.

-- Numbering
SELECT id, salary, row_number() OVER (ORDER BY salary DESC NULLS LAST, id) AS n FROM employees ORDER BY n LIMIT 12;
SELECT id, salary, rank() OVER w AS rank, dense_rank() OVER w AS dense FROM employees WHERE id < 25
WINDOW w AS (ORDER BY salary DESC) ORDER BY rank, id;
SELECT id, dept, row_number() OVER (PARTITION BY dept ORDER BY hired) FROM employees WHERE id < 20 ORDER BY dept, 3;
SELECT name, salary, percent_rank() OVER (ORDER BY salary) AS p, cume_dist() OVER (ORDER BY salary) AS c FROM employees
WHERE salary IS NOT NULL AND dept = 'Sales' ORDER BY salary, id;
SELECT id, ntile(4) OVER (ORDER BY id) AS quarter, ntile(3) OVER (ORDER BY id DESC) AS third FROM employees WHERE id <= 10 ORDER BY id;
SELECT dept, id, ntile(2) OVER (PARTITION BY dept ORDER BY salary NULLS FIRST, id) FROM employees WHERE id < 16 ORDER BY dept, id;
SELECT quartile, count(*) AS n, min(distance) AS shortest, max(distance) AS longest
FROM (SELECT distance, ntile(4) OVER (ORDER BY distance, flight, time_hour, origin) AS quartile FROM flights) q
GROUP BY quartile ORDER BY quartile;
SELECT carrier, n, rank() OVER (ORDER BY n DESC) FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) c ORDER BY 3, 1;
SELECT carrier, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place, sum(count(*)) OVER () AS total
FROM flights GROUP BY carrier ORDER BY place, carrier;
SELECT origin, dest, n FROM (SELECT origin, dest, count(*) AS n, row_number() OVER (PARTITION BY origin
  ORDER BY count(*) DESC, dest) AS place
FROM flights GROUP BY origin, dest) r WHERE place <= 3 ORDER BY origin, place;
SELECT month, carrier, delay FROM (SELECT month, carrier, round(avg(dep_delay), 2) AS delay,
  rank() OVER (PARTITION BY month ORDER BY avg(dep_delay) DESC NULLS LAST) AS r FROM flights
GROUP BY month, carrier) m WHERE r = 1 ORDER BY month, carrier;
SELECT id, row_number() OVER () > 0, count(*) OVER () FROM employees WHERE id < 4 ORDER BY id;
SELECT x, rank() OVER (ORDER BY x NULLS FIRST) AS first, rank() OVER (ORDER BY x) AS last, dense_rank() OVER (ORDER BY x DESC) AS down
FROM (VALUES (1), (null), (2), (1)) v(x) ORDER BY x NULLS FIRST;
SELECT t, rank() OVER (ORDER BY t COLLATE "C") AS r FROM t_types WHERE id IN (2, 3, 7, 8, 13, 14) ORDER BY r;
SELECT status, order_id, percent_rank() OVER (PARTITION BY status ORDER BY order_id) FROM orders WHERE order_id <= 100015 ORDER BY 1, 2;
SELECT percent_rank() OVER (ORDER BY id), cume_dist() OVER (ORDER BY id), ntile(5) OVER (ORDER BY id) FROM employees WHERE id = 1;

-- lag and lead
SELECT month, n, lag(n) OVER (ORDER BY month) AS before, n - lag(n) OVER (ORDER BY month) AS change
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) m ORDER BY month;
SELECT month, lead(n, 2) OVER (ORDER BY month) AS in_two, lag(n, 2, 0) OVER (ORDER BY month) AS two_ago
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) m ORDER BY month;
SELECT id, lag(id) OVER (ORDER BY id), lead(id) OVER (ORDER BY id), lag(id, 0) OVER (ORDER BY id) FROM employees WHERE id <= 6 ORDER BY id;
SELECT id, lag(name, 1, 'nobody') OVER (ORDER BY id), lead(salary, 3, -1) OVER (ORDER BY id) FROM employees WHERE id <= 8 ORDER BY id;
SELECT id, lag(bonus, 1, 0) OVER (ORDER BY id) AS default_type, lead(bonus, -1) OVER (ORDER BY id) AS negative
FROM employees WHERE id <= 6 ORDER BY id;
SELECT order_id, order_date, order_date - lag(order_date) OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS days
FROM orders WHERE customer_id IN (1, 32) ORDER BY customer_id, order_date, order_id;
SELECT session_id, event_id, occurred_at - lag(occurred_at) OVER (PARTITION BY session_id ORDER BY occurred_at) FROM events
WHERE session_id BETWEEN 5000000003 AND 5000000004 ORDER BY event_id;
SELECT event_id, kind, lead(kind) OVER (PARTITION BY session_id ORDER BY occurred_at) AS next FROM events
WHERE session_id = 5000000010 ORDER BY 1;
SELECT tailnum, time_hour, origin, lag(dest) OVER (PARTITION BY tailnum ORDER BY time_hour, flight) AS came_from FROM flights
WHERE tailnum IN ('N711MQ', 'N725MQ') ORDER BY tailnum, time_hour, flight;
SELECT origin, month, day, hour, round((temp - lag(temp) OVER (PARTITION BY origin ORDER BY time_hour))::numeric, 2) FROM weather
WHERE month = 1 AND day = 6 AND hour < 6 ORDER BY origin, time_hour;
SELECT id, x, lag(x) OVER (ORDER BY id) AS l, coalesce(x, lag(x) OVER (ORDER BY id)) AS filled
FROM (VALUES (1, 10), (2, null), (3, 30), (4, null)) v(id, x) ORDER BY id;
SELECT d, d - lag(d, 1, d) OVER (ORDER BY d) AS gap, lead(d, 1, date '2099-12-31') OVER (ORDER BY d) AS next
FROM (VALUES (date '2013-01-01'), ('2013-01-05'), ('2013-02-01')) v(d) ORDER BY d;
SELECT id, lag(id, id) OVER (ORDER BY id), lag(null::int) OVER (ORDER BY id) FROM generate_series(1, 4) id ORDER BY id;
SELECT dept, year, n, n - lag(n, 1, 0::bigint) OVER (PARTITION BY dept ORDER BY year) AS change
FROM (SELECT dept, extract(year FROM hired)::int AS year, count(*) AS n FROM employees GROUP BY 1, 2) h
WHERE dept = 'Finance' ORDER BY year;

-- first_value, last_value, nth_value
SELECT id, dept, first_value(name) OVER (PARTITION BY dept ORDER BY salary DESC NULLS LAST, id) AS best_paid
FROM employees WHERE id < 14 ORDER BY id;
SELECT id, last_value(id) OVER (ORDER BY id), last_value(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
FROM employees WHERE id <= 5 ORDER BY id;
SELECT id, nth_value(id, 2) OVER (ORDER BY id) AS second, nth_value(id, 3) OVER w AS third, nth_value(id, 9) OVER w AS none
FROM employees WHERE id <= 5 WINDOW w AS (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY id;
SELECT month, n, first_value(n) OVER (ORDER BY month), last_value(n) OVER (ORDER BY month RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) m ORDER BY month;
SELECT x, first_value(x) OVER (ORDER BY x NULLS FIRST) AS f,
  last_value(x) OVER (ORDER BY x NULLS LAST ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS l
FROM (VALUES (3), (null), (1)) v(x) ORDER BY x NULLS LAST;
SELECT product_id, category, price, price - first_value(price) OVER (PARTITION BY category ORDER BY price, product_id) FROM products
WHERE product_id < 15 ORDER BY category NULLS LAST, price, product_id;
SELECT DISTINCT status, first_value(order_id) OVER w AS first, last_value(order_id) OVER w AS last FROM orders
WINDOW w AS (PARTITION BY status ORDER BY order_id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) ORDER BY status;
-- fails
SELECT nth_value(id, 0) OVER (ORDER BY id) AS n FROM employees;

-- Aggregates over the whole partition, running totals
SELECT month, sum(count(*)) OVER (ORDER BY month), count(*) FROM flights GROUP BY month ORDER BY month;
SELECT id, salary, avg(salary) OVER (PARTITION BY dept) AS dept_mean,
  salary - avg(salary) OVER (PARTITION BY dept) AS difference FROM employees
WHERE id < 13 ORDER BY id;
SELECT id, salary, sum(salary) OVER (ORDER BY salary) AS peers_too, sum(salary) OVER (ORDER BY salary, id) AS rows FROM employees
WHERE id BETWEEN 5 AND 18 ORDER BY salary, id;
SELECT id, sum(id) OVER (), sum(id) OVER (ORDER BY id), sum(id) OVER (ORDER BY id DESC) FROM employees WHERE id <= 5 ORDER BY id;
SELECT order_id, quantity, sum(quantity) OVER (ORDER BY order_id), avg(quantity) OVER (ORDER BY order_id)
FROM orders ORDER BY order_id LIMIT 10;
SELECT order_date, sum(total) OVER (ORDER BY order_date) AS running FROM (SELECT order_date, sum(quantity * unit_price) AS total FROM orders
GROUP BY order_date) d ORDER BY order_date LIMIT 10;
SELECT country, n, round(100.0 * n / sum(n) OVER (), 2) AS share, sum(n) OVER (ORDER BY n DESC, country) AS running
FROM (SELECT country, count(*) AS n FROM customers GROUP BY country) c ORDER BY n DESC, country;
SELECT id, count(*) OVER (PARTITION BY dept), max(salary) OVER (PARTITION BY dept),
  min(hired) OVER (PARTITION BY dept) FROM employees WHERE id > 30 ORDER BY id;
SELECT id, salary, sum(salary) FILTER (WHERE dept = 'Sales') OVER (ORDER BY id), count(*) FILTER (WHERE salary > 50000) OVER (ORDER BY id)
FROM employees WHERE id <= 10 ORDER BY id;
SELECT carrier, month, n, max(n) OVER (PARTITION BY carrier ORDER BY month) AS most_so_far FROM (SELECT carrier, month, count(*) AS n
FROM flights WHERE carrier IN ('VX', 'FL') GROUP BY 1, 2) m ORDER BY 1, 2;
SELECT id, bool_and(active) OVER (ORDER BY id) AS all_active, bool_or(NOT active) OVER (ORDER BY id) AS any_lost
FROM (SELECT customer_id AS id, active FROM customers) c WHERE id <= 8 ORDER BY id;
SELECT id, string_agg(name, ',') OVER (ORDER BY id), array_agg(id) OVER (ORDER BY id ROWS 2 PRECEDING)
FROM employees WHERE id <= 5 ORDER BY id;
SELECT faa, alt, alt - avg(alt) OVER (PARTITION BY tz) > 5000 AS high FROM airports WHERE alt > 8000 ORDER BY alt DESC, faa LIMIT 10;
SELECT x, sum(x) OVER (ORDER BY x) AS s, avg(x) OVER (ORDER BY x) AS a, count(x) OVER (ORDER BY x) AS c, count(*) OVER (ORDER BY x) AS n
FROM (VALUES (1), (1), (2), (null), (4)) v(x) ORDER BY x;
SELECT i, sum(i::bigint) OVER (ORDER BY id), sum(bi) OVER (ORDER BY id) FROM t_types WHERE id < 6 ORDER BY id;
SELECT id, stddev_pop(salary) OVER w AS s, variance(salary) OVER w AS v FROM employees WHERE dept = 'Support' AND id < 30
WINDOW w AS (ORDER BY id) ORDER BY id;

-- ROWS
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS three FROM employees WHERE id <= 7 ORDER BY id;
SELECT id, avg(salary) OVER (ORDER BY id ROWS 2 PRECEDING) FROM employees WHERE id <= 10 ORDER BY id;
SELECT d, n, round(avg(n) OVER (ORDER BY d ROWS BETWEEN 6 PRECEDING AND CURRENT ROW), 2) AS week
FROM (SELECT time_hour::date AS d, count(*) AS n
FROM flights WHERE month = 5 GROUP BY 1) f ORDER BY d LIMIT 20;
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) AS ahead,
  sum(id) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING) AS behind
FROM employees WHERE id <= 7 ORDER BY id;
SELECT id, count(*) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND CURRENT ROW),
  count(*) OVER (ORDER BY id ROWS BETWEEN 5 PRECEDING AND 3 PRECEDING)
FROM employees WHERE id <= 5 ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS before,
  sum(id) OVER (ORDER BY id ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS after
FROM employees WHERE id <= 6 ORDER BY id;
SELECT id, first_value(id) OVER w, last_value(id) OVER w, nth_value(id, 2) OVER w FROM employees WHERE id <= 6
WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) ORDER BY id;
SELECT id, sum(salary) OVER (PARTITION BY dept ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) AS previous
FROM employees WHERE id <= 12 ORDER BY id;
SELECT order_id, min(unit_price) OVER (ORDER BY order_id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING),
  max(unit_price) OVER (ORDER BY order_id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) FROM orders ORDER BY order_id LIMIT 9;
-- fails
SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN -1 PRECEDING AND CURRENT ROW) AS s FROM employees;

-- RANGE
SELECT id, salary, count(*) OVER (ORDER BY salary RANGE BETWEEN 5000 PRECEDING AND 5000 FOLLOWING) AS near
FROM employees WHERE id < 15 ORDER BY salary, id;
SELECT id, salary, sum(salary) OVER (ORDER BY salary DESC RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
FROM employees WHERE id < 15 ORDER BY salary DESC, id;
SELECT order_id, order_date, count(*) OVER (ORDER BY order_date RANGE BETWEEN INTERVAL '7 days' PRECEDING AND CURRENT ROW) AS in_week
FROM orders WHERE order_date < '2022-02-01' ORDER BY order_date, order_id LIMIT 25;
SELECT name, hired, count(*) OVER (ORDER BY hired RANGE BETWEEN '1 year' PRECEDING
  AND '1 year' FOLLOWING) AS colleagues FROM employees WHERE id < 12 ORDER BY hired;
SELECT event_id, sum(duration_ms) OVER (ORDER BY occurred_at RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND INTERVAL '1 second' PRECEDING)
FROM events ORDER BY occurred_at LIMIT 12;
SELECT ts, count(*) OVER (ORDER BY ts RANGE BETWEEN interval '1 month' PRECEDING AND CURRENT ROW) AS n
FROM (VALUES (timestamp '2013-01-31'), ('2013-02-28'), ('2013-03-01'), ('2013-03-31')) v(ts) ORDER BY ts;
SELECT ti, count(*) OVER (ORDER BY ti RANGE BETWEEN interval '2 hours' PRECEDING
  AND interval '2 hours' FOLLOWING) AS n FROM t_types WHERE id <= 12 ORDER BY ti;
SELECT x, sum(x) OVER (ORDER BY x RANGE BETWEEN 0.5 PRECEDING AND 0.5 FOLLOWING) FROM (VALUES (1.0), (1.5), (2.0), (3.1)) v(x) ORDER BY x;
SELECT x, count(*) OVER (ORDER BY x RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) AS n,
  count(*) OVER (ORDER BY x NULLS FIRST RANGE UNBOUNDED PRECEDING) AS m
FROM (VALUES (1), (null), (2), (2), (4), (null)) v(x) ORDER BY x;
SELECT x, sum(x) OVER (ORDER BY x DESC RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS s FROM generate_series(1, 8, 2) x ORDER BY x;
SELECT d, sum(n) OVER (ORDER BY d RANGE BETWEEN interval '2 days' PRECEDING AND CURRENT ROW)
FROM (SELECT order_date AS d, sum(quantity) AS n
FROM orders GROUP BY 1) o WHERE d < '2022-01-20' ORDER BY d;
SELECT month, n, round(avg(n) OVER (ORDER BY month RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING), 1) AS smooth
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) m ORDER BY month;
SELECT id, count(*) OVER (RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) AS all_are_peers FROM employees WHERE id < 4 ORDER BY id;
-- fails
SELECT sum(id) OVER (ORDER BY name, id RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM employees;

-- GROUPS and EXCLUDE
SELECT id, salary, count(*) OVER (ORDER BY salary GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n FROM employees
WHERE id <= 14 ORDER BY salary, id;
SELECT x, sum(x) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s, count(*) OVER (ORDER BY x GROUPS 1 PRECEDING) AS c
FROM (VALUES (1), (1), (3), (5), (5), (7)) v(x) ORDER BY x;
SELECT x, sum(x) OVER (ORDER BY x GROUPS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) FROM (VALUES (1), (1), (3), (5), (5), (7)) v(x) ORDER BY x;
SELECT x, count(*) OVER (ORDER BY x GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS n,
  last_value(x) OVER (ORDER BY x GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING)
FROM (VALUES (1), (1), (null), (5), (null)) v(x) ORDER BY x;
SELECT id, sum(id) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING
  AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS others FROM employees WHERE id <= 5 ORDER BY id;
SELECT x, n, sum(x) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP),
  sum(n) OVER (ORDER BY x RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES),
  sum(x) OVER (ORDER BY x ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE NO OTHERS)
FROM (VALUES (1, 10), (2, 20), (2, 20), (3, 30)) v(x, n) ORDER BY x;
SELECT id, dept, avg(salary) OVER (PARTITION BY dept ROWS BETWEEN UNBOUNDED PRECEDING
  AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW) AS others_mean
FROM employees WHERE id < 11 ORDER BY id;
SELECT x, count(*) OVER (ORDER BY x GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS n
FROM (VALUES (1), (1), (2), (3), (3)) v(x) ORDER BY x;

-- Named windows, several windows, windows beside other clauses
SELECT id, rank() OVER w, sum(salary) OVER w, count(*) OVER (w ROWS UNBOUNDED PRECEDING) FROM employees WHERE id < 10
WINDOW w AS (PARTITION BY dept ORDER BY id) ORDER BY id;
SELECT id, row_number() OVER (p ORDER BY hired DESC) AS newest, count(*) OVER p AS n FROM employees WHERE id < 10
WINDOW p AS (PARTITION BY dept) ORDER BY id;
SELECT id, sum(id) OVER a AS up, sum(id) OVER b AS down FROM employees WHERE id < 6
WINDOW a AS (ORDER BY id), b AS (ORDER BY id DESC) ORDER BY id;
SELECT id, dept, salary FROM employees ORDER BY rank() OVER (PARTITION BY dept ORDER BY salary DESC NULLS LAST),
  dept NULLS LAST, id LIMIT 8;
SELECT DISTINCT dept, max(salary) OVER (PARTITION BY dept) FROM employees ORDER BY dept NULLS LAST;
SELECT customer_id, total, total >= avg(total) OVER () AS above FROM (SELECT customer_id, sum(quantity) AS total FROM orders GROUP BY 1) o
ORDER BY total DESC, customer_id LIMIT 6;
WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY customer_id ORDER BY order_date, order_id) AS n
  FROM orders WHERE customer_id IS NOT NULL)
SELECT n AS nth_order, count(*) AS customers, round(avg(quantity), 3) AS quantity FROM numbered GROUP BY n ORDER BY n;
WITH marked AS (SELECT event_id, kind, CASE WHEN kind = lag(kind) OVER (ORDER BY event_id) THEN 0 ELSE 1 END AS start FROM events),
     runs AS (SELECT kind, sum(start) OVER (ORDER BY event_id) AS run FROM marked)
SELECT kind, max(n) AS longest FROM (SELECT kind, run, count(*) AS n FROM runs GROUP BY kind, run) r GROUP BY kind ORDER BY kind;
WITH e AS (SELECT user_id, occurred_at, occurred_at - lag(occurred_at) OVER (PARTITION BY user_id
  ORDER BY occurred_at) > interval '11 hours' AS new
           FROM events WHERE user_id < 6)
SELECT user_id, 1 + count(*) FILTER (WHERE new) AS visits, count(*) AS events FROM e GROUP BY user_id ORDER BY user_id;
SELECT month, n, n = max(n) OVER () AS busiest, round(n * 1.0 / first_value(n) OVER (ORDER BY month), 4) AS against_january
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) m ORDER BY month;
SELECT origin, month, sum(n) AS n, sum(sum(n)) OVER (PARTITION BY origin ORDER BY month) AS running
FROM (SELECT origin, month, 1 AS n FROM flights
WHERE carrier = 'WN' AND month <= 4) f GROUP BY origin, month ORDER BY origin, month;
SELECT carrier, grouping(carrier) AS g, count(*) AS n, rank() OVER (PARTITION BY grouping(carrier) ORDER BY count(*) DESC) AS r FROM flights
WHERE carrier < 'C' GROUP BY ROLLUP (carrier) ORDER BY g, r;
SELECT o.order_id, o.unit_price, p.price, round(avg(o.unit_price - p.price) OVER (PARTITION BY p.category), 2) AS mean_gap FROM orders o
JOIN products p USING (product_id) WHERE o.order_id < 100012 ORDER BY o.order_id;
SELECT id, iv, rank() OVER (ORDER BY iv::interval) AS r, sum(iv::interval) OVER (ORDER BY iv::interval, id) AS s
FROM t_types WHERE id < 10 ORDER BY r, id;
SELECT d, id, rank() OVER (ORDER BY d) AS r, dense_rank() OVER (ORDER BY d DESC) AS down FROM floats WHERE id NOT IN (5, 20) ORDER BY r, id;
SELECT count(*) OVER (), carrier FROM flights WHERE false;
SELECT sum(count(*)) OVER () AS n FROM flights;
SELECT lag(1) OVER (ORDER BY 1), rank() OVER (ORDER BY null);
SELECT x, lead(x) OVER (ORDER BY x) - x AS gap
FROM (SELECT DISTINCT flight AS x FROM flights WHERE carrier = 'HA' OR carrier = 'YV') f ORDER BY x;
-- fails
SELECT id FROM employees WHERE row_number() OVER (ORDER BY id) < 3;
-- fails
SELECT dept, rank() OVER (ORDER BY salary) AS r FROM employees GROUP BY dept;

-- Exclusion, and offsets that are columns.
SELECT x, array_agg(x) OVER w, min(x) OVER w, string_agg(x::text, ',') OVER w, first_value(x) OVER w, last_value(x)
OVER w, nth_value(x, 2) OVER w, row_number() OVER w FROM (VALUES (1), (2), (3)) v(x) WINDOW w AS (ORDER BY x ROWS
BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) ORDER BY x;
SELECT x, count(*) FILTER (WHERE x > 1) OVER (w ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE GROUP) AS c
FROM (VALUES (1), (2), (2), (3)) v(x) WINDOW w AS (ORDER BY x) ORDER BY x;
SELECT x, stddev(x) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW) AS s, bool_or(x >
2) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING EXCLUDE CURRENT ROW) AS b FROM (VALUES (1), (2), (4),
(NULL)) v(x) ORDER BY x;
SELECT x, sum(x) OVER (ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP) FROM (VALUES (1), (2))
v(x) ORDER BY x;
SELECT x, o, lag(x, o) OVER (ORDER BY x) AS a, lead(x, o, -x) OVER (ORDER BY x) AS b, lag(x, 1, x * 10) OVER (ORDER
BY x) AS c FROM (VALUES (1, 1), (2, 0), (3, 2), (4, NULL), (5, -1)) v (x, o) ORDER BY x;
SELECT t, count(*) OVER (ORDER BY t DESC RANGE BETWEEN interval '90 minutes' PRECEDING AND CURRENT ROW) AS n FROM
(VALUES (time '01:00'), (time '02:00'), (time '04:00'), (NULL)) v (t) ORDER BY t;

-- An order that joins texts.

SELECT id, max(i) OVER (ORDER BY t || v, id) AS x FROM t_types ORDER BY id;
SELECT id, count(*) OVER (PARTITION BY t || v ORDER BY v || t, id) AS x FROM t_types ORDER BY id;

-- An infinity or NaN leaves the frame, and with it its effect
SELECT id, var_pop(d) OVER w AS var_pop, var_samp(d) OVER w AS var_samp, stddev_pop(r) OVER w AS stddev_pop, stddev(r) OVER w AS stddev FROM floats
WHERE id NOT IN (8, 9) WINDOW w AS (ORDER BY id ROWS 2 PRECEDING) ORDER BY id;
SELECT id, var_pop(d1) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS var_pop, stddev(d2) OVER (ORDER BY id) AS stddev FROM nums ORDER BY id;

-- Offsets of frames that are casts.
SELECT id, ts, count(*) OVER (ORDER BY ts RANGE BETWEEN '1 year'::interval PRECEDING AND '2 mons'::interval FOLLOWING) AS n,
  sum(id) OVER (ORDER BY ts DESC RANGE BETWEEN '10 years'::interval PRECEDING AND CURRENT ROW) AS s FROM t_types
WHERE ts > '2000-01-01' AND ts < '2030-01-01' ORDER BY ts, id;
SELECT id, sum(i) OVER w AS s, count(*) OVER (w ROWS BETWEEN 2::int8 PRECEDING AND 1::int2 FOLLOWING) AS n FROM t_types
WHERE id BETWEEN 7 AND 20 WINDOW w AS (ORDER BY id) ORDER BY id;
SELECT id, sum(id) OVER (ORDER BY id RANGE BETWEEN 2::int8 PRECEDING AND 1::int2 PRECEDING) AS a,
  sum(id) OVER (ORDER BY id DESC RANGE BETWEEN (2) PRECEDING AND '6'::int FOLLOWING EXCLUDE CURRENT ROW) AS b,
  count(*) OVER (ORDER BY d RANGE BETWEEN 1 PRECEDING AND 1.5::float8 FOLLOWING) AS c FROM t_types WHERE id BETWEEN 7 AND 20 ORDER BY id;
SELECT da, count(*) OVER (ORDER BY da RANGE '365 days'::interval PRECEDING) AS n FROM t_types WHERE da BETWEEN '2010-01-01' AND '2030-01-01'
ORDER BY da, n;
-- refused: an offset that is computed
SELECT sum(id) OVER (ORDER BY id ROWS 1 + 1 PRECEDING) FROM t_types;

-- A value that is not finite leaves the frame with its row
SELECT i, corr(y, x) OVER w AS corr, covar_pop(y, x) OVER w AS pop, covar_samp(y, x) OVER w AS samp, regr_slope(y, x) OVER w AS slope,
  regr_intercept(y, x) OVER w AS intercept, regr_r2(y, x) OVER w AS r2, regr_count(y, x) OVER w AS n
FROM (VALUES (1, 1::float8, 2::float8), (2, 'Infinity', 3), (3, 2, 5), (4, 4, 7), (5, 5, 'NaN'), (6, 7, 7), (7, 8, 7), (8, NULL, 1), (9, 3, 2), (10, 3, 4)) v(i, x, y)
WINDOW w AS (ORDER BY i ROWS 1 PRECEDING) ORDER BY i;
SELECT i, regr_avgx(y, x) OVER w AS mean_x, regr_avgy(y, x) OVER w AS mean_y, regr_sxx(y, x) OVER w AS sxx, regr_syy(y, x) OVER w AS syy, regr_sxy(y, x) OVER w AS sxy
FROM (VALUES (1, 1::float8, 2::float8), (2, '-Infinity', 3), (3, 2, 5), (4, 4, 7), (5, 5, 'NaN'), (6, 7, 7), (7, 1e100, 7), (8, 1, 1), (9, 3, 2), (10, 3, 4)) v(i, x, y)
WINDOW w AS (ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) ORDER BY i;
SELECT i, corr(y, x) OVER (ORDER BY i) AS corr, regr_slope(y, x) OVER (ORDER BY i) AS slope, regr_r2(y, x) OVER (ORDER BY i) AS r2
FROM (VALUES (1, 1::float8, 2::float8), (2, 2, 2), (3, 2, 5), (4, 'NaN', 7), (5, 5, 1)) v(i, x, y) ORDER BY i;
SELECT g, corr(y, x) AS corr, covar_samp(y, x) AS samp, regr_r2(y, x) AS r2, regr_avgx(y, x) AS mean, corr(y, x) FILTER (WHERE x < 3) AS kept
FROM (VALUES ('a', 1::float8, 2::float8), ('a', 'NaN', 3), ('b', 1, 2), ('b', 2, 3), ('b', 4, 4), ('c', 1, 1), ('d', 1, 5), ('d', 2, 5), ('e', 'Infinity', 1), ('e', 1, 2)) v(g, x, y)
GROUP BY g ORDER BY g;
SELECT corr(y, x) AS corr, covar_pop(y, x) AS pop FROM (VALUES (1::float8, 1e300::float8), (2, -1e300)) v(x, y);
SELECT i, corr(0.1::float8, i) OVER w AS corr, regr_r2(0.1::float8, i) OVER w AS r2, regr_slope(i, 0.1::float8) OVER w AS slope, covar_pop(0.1::float8, i) OVER w AS pop
FROM generate_series(1, 12) i WINDOW w AS (ORDER BY i ROWS 4 PRECEDING) ORDER BY i;
