-- Whole questions that analysts ask.

-- The busiest and the farthest
SELECT carrier, count(*) AS flights FROM flights GROUP BY carrier ORDER BY flights DESC, carrier LIMIT 5;
SELECT origin, dest, count(*) AS flights, avg(distance) AS miles FROM flights GROUP BY origin, dest
ORDER BY flights DESC, origin, dest LIMIT 10;
SELECT a.name AS airport, count(*) AS arrivals FROM flights f JOIN airports a ON a.faa = f.dest GROUP BY a.name
ORDER BY arrivals DESC, airport LIMIT 10;
SELECT origin, dest, max(distance) AS miles FROM flights GROUP BY origin, dest ORDER BY miles DESC, origin, dest
LIMIT 3;
SELECT p.manufacturer, count(DISTINCT p.tailnum) AS planes, count(*) AS flights FROM flights f
JOIN planes p USING (tailnum)
GROUP BY p.manufacturer ORDER BY flights DESC, p.manufacturer LIMIT 6;
SELECT c.country, count(DISTINCT c.customer_id) AS customers, sum(o.quantity * o.unit_price) AS revenue
FROM customers c JOIN orders o USING (customer_id) GROUP BY c.country ORDER BY revenue DESC;
SELECT p.category, p.name, sum(o.quantity) AS units FROM orders o JOIN products p USING (product_id)
GROUP BY p.category, p.name ORDER BY units DESC, p.name LIMIT 8;

-- Top n of each group
SELECT origin, dest, n FROM (
  SELECT origin, dest, count(*) AS n, row_number() OVER (PARTITION BY origin ORDER BY count(*) DESC, dest) AS place
    FROM flights GROUP BY origin, dest) t
WHERE place <= 3 ORDER BY origin, place;
WITH revenue AS (SELECT c.country, c.name, c.customer_id, sum(o.quantity * o.unit_price) AS total FROM customers c
  JOIN orders o USING (customer_id) GROUP BY 1, 2, 3),
ranked AS (SELECT *, rank() OVER (PARTITION BY country ORDER BY total DESC) AS place FROM revenue)
SELECT country, place, name, total FROM ranked WHERE place <= 2 ORDER BY country, place, customer_id;
SELECT dept, name, salary, dense_rank() OVER (PARTITION BY dept ORDER BY salary DESC NULLS LAST) AS place FROM employees
WHERE dept IN ('Sales', 'Finance') ORDER BY dept, place, name;
SELECT DISTINCT ON (month) month, day, dest, arr_delay FROM flights WHERE arr_delay IS NOT NULL
ORDER BY month, arr_delay DESC, flight;
SELECT carrier, month, flights FROM (
  SELECT carrier, month, count(*) AS flights, max(count(*)) OVER (PARTITION BY carrier) AS best FROM flights
    GROUP BY carrier, month) t
WHERE flights = best AND carrier IN ('AA', 'UA', 'DL', 'B6') ORDER BY carrier, month;
SELECT dept, min(salary) AS second_highest FROM (
  SELECT dept, salary, dense_rank() OVER (PARTITION BY dept ORDER BY salary DESC) AS place FROM employees
    WHERE salary IS NOT NULL) t
WHERE place <= 2 GROUP BY dept ORDER BY dept NULLS LAST;

-- Growth from month to month
SELECT month, n, n - lag(n) OVER (ORDER BY month) AS change,
  round(100.0 * (n - lag(n) OVER (ORDER BY month)) / lag(n) OVER (ORDER BY month), 1) AS percent
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) t ORDER BY month;
WITH monthly AS (SELECT date_trunc('month', order_date) AS month, sum(quantity * unit_price) AS revenue FROM orders
  GROUP BY 1)
SELECT to_char(month, 'YYYY-MM') AS month, revenue, lag(revenue) OVER w AS previous,
  round(revenue / nullif(lag(revenue) OVER w, 0) - 1, 4) AS growth
FROM monthly WINDOW w AS (ORDER BY month) ORDER BY 1;
WITH quarterly AS (SELECT extract(year FROM order_date)::int AS y, extract(quarter FROM order_date)::int AS q,
  count(*) AS n FROM orders GROUP BY 1, 2)
SELECT a.q AS quarter, a.n AS n_2022, b.n AS n_2023, b.n - a.n AS difference FROM quarterly a
JOIN quarterly b ON b.q = a.q AND b.y = 2023 WHERE a.y = 2022 ORDER BY a.q;
SELECT date_trunc('quarter', order_date)::date AS quarter, count(*) AS orders,
  sum(count(*)) OVER (ORDER BY date_trunc('quarter', order_date)) AS total
FROM orders GROUP BY date_trunc('quarter', order_date) ORDER BY quarter;
SELECT to_char(order_date, 'YYYY-"Q"Q') AS quarter, count(*) AS orders,
  first_value(count(*)) OVER (ORDER BY to_char(order_date, 'YYYY-"Q"Q')) AS base
FROM orders GROUP BY 1 ORDER BY 1;
SELECT year, month, revenue, lag(revenue, 12) OVER (ORDER BY year, month) AS a_year_before FROM (
  SELECT extract(year FROM order_date)::int AS year, extract(month FROM order_date)::int AS month,
    sum(unit_price) AS revenue FROM orders GROUP BY 1, 2) t
ORDER BY year, month;

-- Year to date and running totals
SELECT order_date, order_id, amount, sum(amount) OVER (PARTITION BY extract(year FROM order_date)
  ORDER BY order_date, order_id) AS year_to_date
FROM (SELECT order_id, order_date, quantity * unit_price AS amount FROM orders) t
WHERE extract(month FROM order_date) = 1 ORDER BY order_date, order_id LIMIT 30;
SELECT month, n, sum(n) OVER (ORDER BY month) AS running, sum(n) OVER () AS total,
  round(100.0 * sum(n) OVER (ORDER BY month) / sum(n) OVER (), 2) AS percent
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) t ORDER BY month;
SELECT d::date AS day, coalesce(sum(o.quantity), 0) AS units,
  sum(coalesce(sum(o.quantity), 0)) OVER (ORDER BY d) AS running
FROM generate_series(date '2022-03-01', date '2022-03-14', interval '1 day') AS d
LEFT JOIN orders o ON o.order_date = d::date GROUP BY d ORDER BY d;
SELECT hired, name, count(*) OVER (ORDER BY hired) AS headcount FROM employees WHERE dept = 'Support' ORDER BY hired;
SELECT customer_id, order_id, quantity, sum(quantity) OVER (PARTITION BY customer_id
  ORDER BY order_date, order_id ROWS UNBOUNDED PRECEDING) AS so_far
FROM orders WHERE customer_id IN (3, 7, 11) ORDER BY customer_id, order_date, order_id;
SELECT to_char(order_date, 'YYYY-MM') AS month, sum(quantity * unit_price) AS revenue,
       sum(sum(quantity * unit_price)) OVER (PARTITION BY to_char(order_date, 'YYYY')
         ORDER BY to_char(order_date, 'YYYY-MM')) AS year_to_date
FROM orders GROUP BY to_char(order_date, 'YYYY'), to_char(order_date, 'YYYY-MM') ORDER BY month;

-- Moving averages
SELECT month, n, round(avg(n) OVER (ORDER BY month ROWS BETWEEN 2 PRECEDING AND CURRENT ROW), 2) AS three_months
FROM (SELECT month, count(*) AS n FROM flights GROUP BY month) t ORDER BY month;
SELECT day, n, round(avg(n) OVER (ORDER BY day ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING), 2) AS centred
FROM (SELECT day, count(*) AS n FROM flights WHERE month = 5 GROUP BY day) t ORDER BY day;
SELECT d, n, sum(n) OVER (ORDER BY d RANGE BETWEEN interval '6 days' PRECEDING AND CURRENT ROW) AS last_seven_days
FROM (
  SELECT order_date AS d, count(*) AS n FROM orders WHERE order_date < '2022-03-01' GROUP BY order_date) t ORDER BY d
  LIMIT 40;
SELECT hour, round(avg(dep_delay), 2) AS delay,
  round(avg(avg(dep_delay)) OVER (ORDER BY hour ROWS 1 PRECEDING), 2) AS smooth
FROM flights WHERE dep_delay IS NOT NULL GROUP BY hour ORDER BY hour;
SELECT month, round(avg(temp)::numeric, 1) AS temp, round((max(temp) - min(temp))::numeric, 1) AS spread FROM weather
WHERE origin = 'JFK' GROUP BY month ORDER BY month;

-- Shares of the total
SELECT origin, count(*) AS n, round(100.0 * count(*) / sum(count(*)) OVER (), 2) AS percent FROM flights
GROUP BY origin ORDER BY origin;
SELECT carrier, count(*) AS n, round(count(*) * 100.0 / (SELECT count(*) FROM flights), 3) AS share FROM flights
GROUP BY carrier ORDER BY n DESC, carrier;
SELECT dept, name, salary, round(salary::numeric / sum(salary) OVER (PARTITION BY dept), 4) AS share FROM employees
WHERE dept = 'Engineering' ORDER BY id;
SELECT status, count(*) AS n, (count(*)::float8 / sum(count(*)) OVER ())::numeric(6, 4) AS share FROM orders
GROUP BY status ORDER BY status;
SELECT origin, avg((dep_delay > 15)::int)::numeric(6, 4) AS late_share,
  avg(CASE WHEN dep_time IS NULL THEN 1.0 ELSE 0 END)::numeric(6, 4) AS cancelled
FROM flights GROUP BY origin ORDER BY origin;
SELECT country, sum(credit) AS credit, ratio_to.percent FROM customers c JOIN LATERAL (
  SELECT round(100 * sum(x.credit) / (SELECT sum(credit) FROM customers), 2) AS percent FROM customers x
    WHERE x.country = c.country) ratio_to ON true
GROUP BY country, ratio_to.percent ORDER BY country;
SELECT segment, country, count(*) AS n, round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY segment),
  1) AS percent_of_segment
FROM customers GROUP BY segment, country ORDER BY segment NULLS LAST, country;

-- Pareto
WITH revenue AS (SELECT product_id, sum(quantity * unit_price) AS total FROM orders GROUP BY product_id),
cumulated AS (SELECT product_id, total, sum(total) OVER (ORDER BY total DESC, product_id) / sum(total) OVER () AS share
  FROM revenue)
SELECT count(*) FILTER (WHERE share <= 0.8) AS products_for_80_percent, count(*) AS products FROM cumulated;
SELECT carrier, n, round(sum(n) OVER (ORDER BY n DESC, carrier) / sum(n) OVER () * 100, 1) AS cumulated_percent,
       CASE WHEN sum(n) OVER (ORDER BY n DESC, carrier) <= 0.8 * sum(n) OVER () THEN 'A' ELSE 'B' END AS class
FROM (SELECT carrier, count(*) AS n FROM flights GROUP BY carrier) t ORDER BY n DESC, carrier;
SELECT quarter, count(*) AS customers, sum(spent) AS spent FROM (
  SELECT customer_id, sum(unit_price) AS spent, ntile(4) OVER (ORDER BY sum(unit_price) DESC, customer_id) AS quarter
  FROM orders WHERE customer_id IS NOT NULL GROUP BY customer_id) t GROUP BY quarter ORDER BY quarter;

-- Pivots
SELECT carrier, count(*) FILTER (WHERE origin = 'EWR') AS ewr, count(*) FILTER (WHERE origin = 'JFK') AS jfk,
  count(*) FILTER (WHERE origin = 'LGA') AS lga
FROM flights GROUP BY carrier ORDER BY carrier;
SELECT month, sum(CASE WHEN origin = 'EWR' THEN 1 ELSE 0 END) AS ewr, sum(CASE WHEN origin = 'JFK' THEN 1 END) AS jfk
FROM flights GROUP BY month ORDER BY month;
SELECT country, max(credit) FILTER (WHERE segment = 'consumer') AS consumer,
  max(credit) FILTER (WHERE segment = 'corporate') AS corporate,
       max(credit) FILTER (WHERE segment IS NULL) AS none FROM customers GROUP BY country ORDER BY country;
SELECT extract(year FROM order_date) AS year, count(*) FILTER (WHERE status = 'new') AS new,
  count(*) FILTER (WHERE status = 'returned') AS returned,
       round(avg(quantity) FILTER (WHERE status = 'paid'), 3) AS paid_quantity FROM orders GROUP BY 1 ORDER BY 1;
SELECT kind, json_object_agg(day, n ORDER BY day) AS by_day FROM (
  SELECT kind, to_char(occurred_at, 'YYYY-MM-DD') AS day, count(*) AS n FROM events GROUP BY 1, 2) t GROUP BY kind
  ORDER BY kind;
SELECT v.measure, v.value FROM (SELECT count(*) AS n, count(dep_time) AS departed, count(arr_time) AS arrived
  FROM flights) t,
LATERAL (VALUES (1, 'n', n), (2, 'departed', departed), (3, 'arrived', arrived)) AS v (position, measure, value)
ORDER BY v.position;

-- Histograms
SELECT width_bucket(distance, 0, 5000, 10) AS bucket, count(*) AS n, min(distance), max(distance) FROM flights
GROUP BY 1 ORDER BY 1;
SELECT floor(dep_delay / 30.0) * 30 AS from_minutes, count(*) AS n FROM flights WHERE dep_delay BETWEEN -30 AND 299
GROUP BY 1 ORDER BY 1;
SELECT (price / 100)::int * 100 AS about, count(*) AS products FROM products GROUP BY 1 ORDER BY 1;
SELECT b.lower, b.lower + 100 AS upper, count(p.product_id) AS n FROM generate_series(0, 900, 100) AS b (lower)
LEFT JOIN products p ON p.price >= b.lower AND p.price < b.lower + 100 GROUP BY b.lower ORDER BY b.lower;
SELECT repeat('#', count(*)::int) AS bar, quantity FROM orders WHERE status = 'paid' GROUP BY quantity
ORDER BY quantity;
SELECT length(name) AS letters, count(*) FROM airlines GROUP BY 1 ORDER BY 2 DESC, 1;
SELECT date_part('hour', time_hour) AS utc_hour, count(*) AS n FROM flights GROUP BY 1 ORDER BY 1;
SELECT CASE WHEN age < 30 THEN 'under 30' WHEN age < 50 THEN '30 to 49' WHEN age >= 50 THEN '50 and over' ELSE 'unknown' END
  AS band, count(*) AS customers
FROM (SELECT extract(year FROM age(date '2024-01-01', birth_date)) AS age FROM customers) t GROUP BY 1 ORDER BY 1;

-- Percentiles
SELECT origin, percentile_cont(0.5) WITHIN GROUP (ORDER BY dep_delay) AS median,
  percentile_disc(0.9) WITHIN GROUP (ORDER BY dep_delay) AS p90
FROM flights GROUP BY origin ORDER BY origin;
SELECT percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY quantity * unit_price) AS deciles FROM orders;
SELECT percentile_disc(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY order_date) AS dates FROM orders;
SELECT mode() WITHIN GROUP (ORDER BY dest) AS usual_destination, carrier FROM flights
WHERE carrier IN ('F9', 'HA', 'AS', 'FL') GROUP BY carrier ORDER BY carrier;
SELECT name, salary, round((percent_rank() OVER (ORDER BY salary))::numeric, 4) AS percent_rank,
  round((cume_dist() OVER (ORDER BY salary))::numeric, 4) AS cume_dist
FROM employees WHERE dept = 'Sales' AND salary IS NOT NULL ORDER BY salary, name;
SELECT tile, min(salary), max(salary), count(*)
FROM (SELECT salary, ntile(4) OVER (ORDER BY salary, id) AS tile FROM employees WHERE salary IS NOT NULL) t
GROUP BY tile ORDER BY tile;
SELECT rank(50000) WITHIN GROUP (ORDER BY salary) AS place, dense_rank(50000) WITHIN GROUP (ORDER BY salary) AS dense
FROM employees;
SELECT dept, percentile_cont(0.5) WITHIN GROUP (ORDER BY salary) AS median, avg(salary) AS mean FROM employees
GROUP BY dept HAVING count(salary) > 2 ORDER BY dept;

-- Removing duplicates
SELECT count(*) AS n, count(DISTINCT email) AS emails, count(*) - count(email) AS without FROM customers;
SELECT name, count(*) AS n, array_agg(customer_id ORDER BY customer_id) AS ids FROM customers GROUP BY name
HAVING count(*) > 1 ORDER BY n DESC, min(customer_id) LIMIT 10;
WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY customer_id, product_id
  ORDER BY ordered_at DESC, order_id) AS copy FROM orders WHERE customer_id < 10)
SELECT customer_id, product_id, order_id, status FROM numbered WHERE copy = 1 ORDER BY customer_id, product_id LIMIT 25;
SELECT DISTINCT ON (user_id) user_id, kind, occurred_at FROM events WHERE user_id < 6
ORDER BY user_id, occurred_at DESC;
SELECT o.order_id FROM orders o WHERE EXISTS (SELECT 1 FROM orders x
  WHERE x.customer_id = o.customer_id AND x.status = o.status AND x.order_id < o.order_id)
AND o.customer_id < 8 ORDER BY o.order_id;
SELECT tailnum, count(DISTINCT carrier) AS carriers, string_agg(DISTINCT carrier, '+' ORDER BY carrier) AS which
FROM flights WHERE tailnum IS NOT NULL GROUP BY tailnum HAVING count(DISTINCT carrier) > 1 ORDER BY tailnum LIMIT 10;

-- What is missing
SELECT f.dest, count(*) AS n FROM flights f LEFT JOIN airports a ON a.faa = f.dest WHERE a.faa IS NULL GROUP BY f.dest
ORDER BY f.dest;
SELECT count(DISTINCT f.tailnum) AS unknown_planes FROM flights f
WHERE NOT EXISTS (SELECT 1 FROM planes p WHERE p.tailnum = f.tailnum);
SELECT c.customer_id, c.name FROM customers c
LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.order_date >= '2023-07-01'
WHERE o.order_id IS NULL ORDER BY c.customer_id LIMIT 15;
SELECT m FROM generate_series(1, 12) m WHERE m NOT IN (SELECT month FROM flights WHERE dest = 'JAC') ORDER BY m;
SELECT d::date AS day_without_orders FROM generate_series(date '2022-01-01', date '2022-02-15', interval '1 day') d
EXCEPT SELECT order_date FROM orders ORDER BY 1 LIMIT 20;
SELECT product_id, sku FROM products WHERE product_id NOT IN (SELECT product_id FROM orders WHERE status = 'delivered')
ORDER BY product_id;
SELECT customer_id FROM orders EXCEPT SELECT customer_id FROM customers ORDER BY 1 NULLS FIRST;
SELECT e.name FROM employees e WHERE NOT EXISTS (SELECT FROM employees r WHERE r.manager_id = e.id)
  AND e.dept = 'Finance' ORDER BY e.id;

-- Time of day, week and year
SELECT date_trunc('day', occurred_at) AS day, count(*) AS n, min(duration_ms) AS fastest FROM events GROUP BY 1
ORDER BY 1;
SELECT to_char(occurred_at AT TIME ZONE 'Europe/Berlin', 'YYYY-MM-DD HH24') AS berlin_hour, count(*) AS n FROM events
WHERE occurred_at < '2023-03-26 06:00+00' GROUP BY 1 ORDER BY 1;
SELECT extract(isodow FROM make_date(year, month, day)) AS weekday, count(*) AS flights,
  round(avg(arr_delay), 2) AS delay FROM flights GROUP BY 1 ORDER BY 1;
SELECT to_char(make_date(year, month, day), 'Day') AS weekday, count(*) FROM flights
GROUP BY 1, extract(dow FROM make_date(year, month, day))
ORDER BY extract(dow FROM make_date(year, month, day));
SELECT date_trunc('month', time_hour) AS month, count(*) FROM flights GROUP BY 1 ORDER BY 1;
SELECT time_hour::date AS day, count(*) AS n FROM flights GROUP BY time_hour::date ORDER BY n DESC, day LIMIT 5;
SELECT extract(hour FROM time_hour AT TIME ZONE 'America/New_York') = hour AS same_hour, count(*) FROM flights
GROUP BY 1 ORDER BY 1;
SELECT CASE WHEN hour < 6 THEN 'night' WHEN hour < 12 THEN 'morning' WHEN hour < 18 THEN 'afternoon' ELSE 'evening' END
  AS part,
       count(*) AS n, round(avg(dep_delay), 2) AS delay FROM flights GROUP BY 1 ORDER BY min(hour);
SELECT date_bin('6 hours', occurred_at, timestamptz '2023-03-25 00:00+00') AS bin, count(*) FROM events GROUP BY 1
ORDER BY 1 LIMIT 12;
SELECT extract(week FROM order_date) AS week, count(*) AS n FROM orders
WHERE order_date BETWEEN '2022-12-19' AND '2023-01-15' GROUP BY 1 ORDER BY 1;
SELECT order_id, ordered_at, shipped_at, shipped_at - ordered_at::timestamp AS took FROM orders
WHERE shipped_at IS NOT NULL ORDER BY took DESC, order_id LIMIT 5;
SELECT status, avg(shipped_at::date - order_date)::numeric(6, 2) AS days,
  count(*) FILTER (WHERE shipped_at IS NULL) AS open FROM orders GROUP BY status ORDER BY status;
SELECT date_trunc('week', order_date)::date AS monday, sum(quantity) AS units FROM orders
WHERE order_date >= date '2023-12-31' - interval '8 weeks' GROUP BY 1 ORDER BY 1;

-- Delays and the weather
SELECT carrier, round(avg(arr_delay), 2) AS delay, count(*) AS n, max(arr_delay) AS worst FROM flights
WHERE arr_delay IS NOT NULL GROUP BY carrier HAVING count(*) > 100 ORDER BY delay DESC, carrier;
SELECT f.origin, CASE WHEN w.visib < 3 THEN 'poor' ELSE 'good' END AS visibility, count(*) AS n,
  round(avg(f.dep_delay), 2) AS delay
FROM flights f JOIN weather w ON w.origin = f.origin AND w.time_hour = f.time_hour GROUP BY 1, 2 ORDER BY 1, 2;
SELECT round(corr(dep_delay, arr_delay)::numeric, 6) AS corr,
  round(regr_slope(arr_delay, dep_delay)::numeric, 6) AS slope, regr_count(arr_delay, dep_delay) AS n FROM flights;
SELECT origin, round(stddev_samp(dep_delay), 3) AS deviation, round(var_pop(dep_delay), 3) AS variance FROM flights
GROUP BY origin ORDER BY origin;
SELECT month, count(*) FILTER (WHERE dep_time IS NULL) AS cancelled, count(*) AS n,
  round(100.0 * count(*) FILTER (WHERE dep_time IS NULL) / count(*), 2) AS percent FROM flights GROUP BY month
ORDER BY percent DESC, month;
SELECT dest, round(60.0 * sum(distance) / sum(air_time), 1) AS mph FROM flights WHERE air_time > 0 GROUP BY dest
HAVING count(*) >= 100 ORDER BY mph DESC, dest LIMIT 10;
SELECT 2013 - p.year AS plane_age, count(*) AS n, round(avg(f.arr_delay), 1) AS delay FROM flights f
JOIN planes p ON p.tailnum = f.tailnum
WHERE p.year >= 2000 GROUP BY 1 ORDER BY 1;
SELECT flight, dep_time, dep_time / 100 * 60 + dep_time % 100 AS minutes,
  lpad((dep_time / 100)::text, 2, '0') || ':' || lpad((dep_time % 100)::text, 2, '0') AS clock
FROM flights WHERE dest = 'SAN' AND month = 3 AND dep_time IS NOT NULL ORDER BY time_hour, flight, dep_time LIMIT 10;
SELECT origin, month, day, sum(precip)::numeric(8, 2) AS rain FROM weather GROUP BY origin, month, day
HAVING sum(precip) > 1 ORDER BY rain DESC, origin, month, day LIMIT 10;

-- Orders, products and customers
SELECT p.category, sum(o.quantity * (o.unit_price - p.cost))::numeric(14, 2) AS margin,
  round(avg(o.discount), 4) AS discount FROM orders o JOIN products p USING (product_id)
GROUP BY p.category ORDER BY margin DESC;
SELECT coalesce(c.country, 'unknown') AS country, count(*) AS orders,
  sum(o.quantity * o.unit_price * (1 - coalesce(o.discount, 0)))::numeric(12, 2) AS net
FROM orders o LEFT JOIN customers c USING (customer_id) GROUP BY 1 ORDER BY net DESC;
SELECT tag, count(*) AS products, round(avg(price), 2) AS price FROM products, unnest(tags) AS tag GROUP BY tag
ORDER BY products DESC, tag NULLS LAST;
SELECT attributes::jsonb ->> 'color' AS color, count(*) AS n, max((attributes::jsonb ->> 'rating')::numeric) AS best
FROM products GROUP BY 1 ORDER BY 1 NULLS FIRST;
SELECT a.product_id AS a, b.product_id AS b, count(DISTINCT a.customer_id) AS together FROM orders a
JOIN orders b ON a.customer_id = b.customer_id AND a.product_id < b.product_id
GROUP BY 1, 2 HAVING count(DISTINCT a.customer_id) > 2 ORDER BY together DESC, 1, 2 LIMIT 10;
SELECT split_part(email, '@', 2) AS domain, count(*) AS n FROM customers GROUP BY 1 ORDER BY 2 DESC, 1 NULLS LAST;
SELECT category, name, price, price - avg(price) OVER (PARTITION BY category) AS above_average FROM products
WHERE category = 'office' ORDER BY price DESC, product_id LIMIT 6;
SELECT order_id, unit_price, lag(unit_price) OVER w AS before, lead(unit_price, 1, 0) OVER w AS after,
  first_value(unit_price) OVER w AS first
FROM orders WHERE product_id = 18 WINDOW w AS (ORDER BY order_date, order_id) ORDER BY order_date, order_id;
SELECT country, segment, count(*) AS n FROM customers WHERE country IN ('DE', 'FR') GROUP BY ROLLUP (country, segment)
ORDER BY country NULLS LAST, grouping(segment), segment NULLS LAST;
SELECT customer_id, max(order_date) AS last_order, date '2024-01-01' - max(order_date) AS days_ago,
  count(*) AS frequency, sum(quantity * unit_price) AS monetary
FROM orders WHERE customer_id IS NOT NULL GROUP BY customer_id ORDER BY monetary DESC, customer_id LIMIT 10;
SELECT dept, max(salary) - min(salary) AS spread, round(stddev(salary), 2) AS deviation,
  sum(salary + coalesce(bonus, 0)) AS cost FROM employees GROUP BY dept ORDER BY cost DESC;
SELECT name, hired, age(date '2024-01-01', hired) AS tenure FROM employees ORDER BY hired LIMIT 5;
SELECT sum(stock * price) AS stock_value, sum(stock) AS units,
  round(sum(stock * price) / sum(stock), 4) AS weighted_price, count(*) FILTER (WHERE stock IS NULL) AS unknown
FROM products;
SELECT extract(decade FROM birth_date) * 10 AS decade, count(*) AS n, round(avg(credit), 2) AS credit FROM customers
GROUP BY 1 ORDER BY 1;
SELECT p.name, p.price, o.average FROM products p
JOIN (SELECT product_id, round(avg(unit_price), 2) AS average FROM orders GROUP BY product_id) o
USING (product_id) WHERE abs(p.price - o.average) > 600 ORDER BY p.product_id LIMIT 10;
SELECT CASE WHEN n >= 7 THEN 'frequent' WHEN n >= 4 THEN 'regular' ELSE 'rare' END AS class, count(*) AS customers,
  sum(total) AS revenue FROM (
  SELECT customer_id, count(*) AS n, sum(quantity * unit_price) AS total FROM orders WHERE customer_id IS NOT NULL
    GROUP BY customer_id) t
GROUP BY class ORDER BY revenue DESC;
SELECT extract(month FROM order_date) AS month, count(*) FILTER (WHERE extract(year FROM order_date) = 2022) AS y2022,
  count(*) FILTER (WHERE extract(year FROM order_date) = 2023) AS y2023 FROM orders GROUP BY 1 ORDER BY 1;
SELECT p.category, o.status, count(*) AS n,
  round(100.0 * count(*) / sum(count(*)) OVER (PARTITION BY p.category), 1) AS percent
FROM orders o JOIN products p USING (product_id) GROUP BY p.category, o.status ORDER BY p.category NULLS LAST, o.status;
SELECT a.carrier, a.name, f.n, f.delay FROM airlines a LEFT JOIN (
  SELECT carrier, count(*) AS n, round(avg(arr_delay), 1) AS delay FROM flights WHERE dest = 'MIA'
    GROUP BY carrier) f ON f.carrier = a.carrier
ORDER BY f.n DESC NULLS LAST, a.carrier;
SELECT o.name AS from_airport, d.name AS to_airport, f.n
FROM (SELECT origin, dest, count(*) AS n FROM flights GROUP BY origin, dest) f
JOIN airports o ON o.faa = f.origin JOIN airports d ON d.faa = f.dest ORDER BY f.n DESC, f.origin, f.dest LIMIT 7;
SELECT dest, count(DISTINCT carrier) AS carriers, string_agg(DISTINCT carrier, ', ' ORDER BY carrier) AS list
FROM flights
GROUP BY dest HAVING count(DISTINCT carrier) >= 5 ORDER BY carriers DESC, dest;
SELECT tailnum, sum(distance) AS miles, sum(air_time) / 60 AS hours, count(*) AS flights FROM flights
WHERE air_time IS NOT NULL
GROUP BY tailnum ORDER BY miles DESC, tailnum LIMIT 5;
SELECT p.engine, p.engines, count(*) AS planes, round(avg(p.seats), 1) AS seats, min(p.year) AS oldest FROM planes p
GROUP BY p.engine, p.engines HAVING count(*) > 5 ORDER BY planes DESC, p.engine, p.engines;
SELECT tz, count(*) AS airports, max(alt) AS highest, round(avg(alt)) AS average_alt FROM airports GROUP BY tz
ORDER BY tz NULLS FIRST;
SELECT faa, name, alt FROM airports WHERE alt = (SELECT max(alt) FROM airports) OR alt = (SELECT min(alt)
  FROM airports) ORDER BY alt, faa;
SELECT month, carrier, n FROM (SELECT month, carrier, count(*) AS n,
  rank() OVER (PARTITION BY month ORDER BY count(*) DESC) AS place
  FROM flights GROUP BY month, carrier) t WHERE place = 1 ORDER BY month, carrier;
SELECT origin, hour, avg(arr_delay - dep_delay)::numeric(8, 2) AS lost_in_the_air FROM flights
WHERE arr_delay IS NOT NULL AND hour IN (6, 12, 18)
GROUP BY origin, hour ORDER BY origin, hour;
SELECT count(*) AS n, sum((dep_delay > 0)::int) AS late,
  round(sum(dep_delay) FILTER (WHERE dep_delay > 0) / 60.0, 1) AS hours_lost FROM flights;
SELECT CASE WHEN grouping(origin) = 1 THEN 'all' ELSE origin END AS origin, count(*) AS n, sum(distance) AS miles
FROM flights GROUP BY ROLLUP (origin) ORDER BY grouping(origin), origin;
