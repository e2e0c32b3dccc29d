-- Aggregates: plain, filtered, ordered sets, statistics, grouping sets, of nothing.

-- count, sum, avg, min, max over each type
SELECT count(*) AS n, count(dep_delay) AS departed, count(DISTINCT carrier) AS carriers,
  count(DISTINCT (origin, dest)) AS routes FROM flights;
SELECT count(*), sum(distance), avg(distance), min(distance), max(distance) FROM flights;
SELECT count(si), sum(si), avg(si), min(si), max(si) FROM t_types;
SELECT sum(i) AS i, avg(i) AS mean, min(i) AS lowest, max(i) AS highest FROM t_types;
SELECT sum(bi), avg(bi), min(bi), max(bi) FROM t_types;
SELECT sum(n) AS n, avg(n) AS mean, sum(big) AS big, max(big) AS largest, avg(big) AS mean_big FROM t_types;
SELECT sum(d) AS d, avg(d) AS mean, min(r) AS r, max(r) AS largest FROM t_types WHERE id IN (1, 2, 7, 8, 9, 10, 11, 12);
SELECT min(da), max(da), min(ti), max(ti), min(ts), max(ts), min(tz), max(tz) FROM t_types;
SELECT min(t COLLATE "C"), max(t COLLATE "C"), count(DISTINCT t) FROM t_types;
SELECT min(iv::interval) AS shortest, max(iv::interval) AS longest, sum(iv::interval) AS total FROM t_types;
SELECT sum(ti::interval) AS s, avg(ti::interval) AS a FROM t_types WHERE id IN (1, 2, 7);
SELECT carrier, count(*) AS flights, avg(dep_delay) AS delay FROM flights GROUP BY carrier ORDER BY flights DESC, carrier;
SELECT a.name, count(*) AS n, round(avg(f.arr_delay), 2) AS delay FROM flights f JOIN airlines a USING (carrier)
GROUP BY a.name ORDER BY n DESC, a.name;
SELECT origin, dest, count(*) FROM flights GROUP BY origin, dest ORDER BY count(*) DESC, origin, dest LIMIT 10;
SELECT dest, max(distance) - min(distance) AS spread FROM flights GROUP BY dest
HAVING max(distance) <> min(distance) ORDER BY 2 DESC, 1 LIMIT 10;
SELECT sum(quantity * unit_price) AS revenue, status FROM orders GROUP BY status ORDER BY revenue DESC;
SELECT c.country, count(DISTINCT c.customer_id) AS customers, count(o.order_id) AS orders, sum(o.quantity * o.unit_price) AS revenue
FROM customers c LEFT JOIN orders o USING (customer_id) GROUP BY c.country ORDER BY c.country;
SELECT p.category, count(*) AS orders, sum(o.quantity) AS pieces, avg(o.unit_price)::numeric(10, 2) AS price
FROM orders o JOIN products p USING (product_id) GROUP BY p.category ORDER BY p.category NULLS LAST;
SELECT date_trunc('quarter', order_date)::date AS quarter, count(*) AS n, sum(quantity) AS pieces, round(avg(discount), 4) AS discount
FROM orders GROUP BY 1 ORDER BY 1;
SELECT dept, count(*) AS n, min(salary) AS lowest, max(salary) AS highest, sum(bonus) AS bonus FROM employees
GROUP BY dept ORDER BY dept NULLS FIRST;
SELECT kind, count(*), avg(duration_ms), min(occurred_at), max(occurred_at) FROM events GROUP BY kind ORDER BY kind;
SELECT manufacturer, count(*) AS planes, sum(seats) AS seats FROM planes GROUP BY manufacturer HAVING count(*) > 100
ORDER BY planes DESC, 1;
SELECT count(*) FROM (SELECT 1 FROM flights GROUP BY carrier, month) g;
SELECT count(NULL) AS none, count(1) AS all_of, sum(NULL::int) AS nothing, max(NULL::text) AS no_text FROM airlines;
SELECT avg(salary) AS with_nulls, sum(salary) / count(*) AS by_all, avg(coalesce(salary, 0)) AS zeros FROM employees;
SELECT sum(DISTINCT quantity), avg(DISTINCT quantity), count(DISTINCT quantity) FROM orders;
SELECT count(DISTINCT city) AS cities, count(city) AS with_city, count(*) - count(city) AS without FROM customers;
SELECT carrier, count(DISTINCT dest) AS dests, count(DISTINCT tailnum) AS planes FROM flights GROUP BY 1
HAVING count(DISTINCT dest) < 10 ORDER BY 1;
SELECT max(flights), min(flights) FROM (SELECT count(*) AS flights FROM flights GROUP BY month) m;
SELECT month, sum(distance)::numeric / sum(sum(distance)) OVER () AS share FROM flights GROUP BY month ORDER BY month;
SELECT DISTINCT origin, count(*) OVER (PARTITION BY origin) AS n FROM flights ORDER BY origin;

-- Aggregates of nothing
SELECT count(*), sum(distance), avg(distance), min(distance), max(carrier) FROM flights WHERE false;
SELECT carrier, count(*) FROM flights WHERE false GROUP BY carrier;
SELECT count(*) FROM flights WHERE false HAVING count(*) = 0;
SELECT array_agg(carrier) AS a, string_agg(carrier, ',') AS s, bool_and(true) AS b, every(false) AS e FROM airlines WHERE false;
SELECT stddev(distance) AS s, variance(distance) AS v, corr(distance, air_time) AS c,
  regr_count(distance, air_time) AS n FROM flights WHERE false;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY distance), mode() WITHIN GROUP (ORDER BY carrier) FROM flights WHERE false;
SELECT stddev(x) AS one_value, var_pop(x) AS population, stddev_samp(x) AS sample, stddev_pop(x) AS pop FROM (VALUES (5)) v(x);
SELECT sum(x), avg(x), count(x), min(x) FROM (VALUES (null::int), (null)) v(x);
SELECT bit_and(x) AS a, bit_or(x) AS o, bool_or(x > 1) AS b FROM (VALUES (null::int)) v(x);
SELECT coalesce(sum(distance), 0) FROM flights WHERE carrier = 'ZZ';
SELECT 'always' AS word FROM flights HAVING true;
SELECT 1 AS one FROM airlines HAVING count(*) > 100;

-- FILTER
SELECT count(*) FILTER (WHERE dep_delay > 60), count(*) FILTER (WHERE dep_delay IS NULL), count(*) FROM flights;
SELECT origin, avg(dep_delay) FILTER (WHERE month <= 6) AS first_half, avg(dep_delay) FILTER (WHERE month > 6) AS second_half
FROM flights GROUP BY origin ORDER BY origin;
SELECT carrier, sum(distance) FILTER (WHERE dest = 'LAX') AS lax, sum(distance) FILTER (WHERE dest = 'SFO') AS sfo
FROM flights GROUP BY carrier ORDER BY carrier;
SELECT status, count(*) FILTER (WHERE discount IS NULL), count(*) FILTER (WHERE discount > 0.2),
  max(unit_price) FILTER (WHERE quantity > 10)
FROM orders GROUP BY status ORDER BY status;
SELECT count(DISTINCT dest) FILTER (WHERE distance > 2000), count(DISTINCT dest) FILTER (WHERE distance < 500) FROM flights;
SELECT month, round(100.0 * count(*) FILTER (WHERE arr_delay > 15) / nullif(count(arr_delay), 0), 1) AS late
FROM flights GROUP BY month ORDER BY month;
SELECT sum(salary) FILTER (WHERE false) AS nothing, count(*) FILTER (WHERE null) AS zero,
  count(*) FILTER (WHERE NOT (salary > 50000)) AS n FROM employees;
SELECT dept, count(*) FILTER (WHERE salary > (SELECT avg(salary) FROM employees)) FROM employees GROUP BY dept ORDER BY dept NULLS LAST;
SELECT sum(CASE WHEN active THEN 1 ELSE 0 END) AS active, sum(CASE WHEN NOT active THEN credit END) AS credit FROM customers;

-- Booleans and bits
SELECT bool_and(active) AS all_active, bool_or(active) AS any_active, every(credit > -1000) AS every_credit FROM customers;
SELECT segment, bool_and(active), bool_or(birth_date IS NULL), every(country <> 'XX') FROM customers
GROUP BY segment ORDER BY segment NULLS FIRST;
SELECT carrier, bool_or(distance > 4000) FROM flights GROUP BY carrier HAVING bool_or(distance > 2500) ORDER BY carrier;
SELECT every(b) AS e, bool_and(b) FILTER (WHERE b) AS trues, bool_or(NOT b) AS any_false FROM t_types;
SELECT bit_and(quantity) AS a, bit_or(quantity) AS o, bit_xor(quantity) AS x FROM orders WHERE order_id BETWEEN 100001 AND 100005;

-- string_agg and array_agg
SELECT string_agg(carrier, ', ' ORDER BY carrier) FROM airlines;
SELECT string_agg(carrier, '' ORDER BY carrier DESC) FROM airlines WHERE carrier < 'C';
SELECT origin, string_agg(DISTINCT carrier, '/' ORDER BY carrier) AS carriers FROM flights GROUP BY origin ORDER BY origin;
SELECT dept, string_agg(name, '; ' ORDER BY salary DESC NULLS LAST, id) AS staff FROM employees WHERE id < 15 GROUP BY dept ORDER BY dept;
SELECT string_agg(note, ', ' ORDER BY order_id) FROM orders WHERE order_id < 100060;
SELECT string_agg(name, ' | ' ORDER BY carrier) FILTER (WHERE name LIKE '%Airlines%') AS airlines FROM airlines;
SELECT string_agg(quantity::text, '+' ORDER BY order_id) AS sum, status FROM orders WHERE customer_id = 1 GROUP BY status ORDER BY status;
SELECT string_agg(x, ','), string_agg(x, NULL ORDER BY x) FROM (VALUES ('a'), (NULL), ('a')) v(x);
SELECT string_agg(x, sep ORDER BY n) AS s FROM (VALUES (1, 'a', '-'), (2, 'b', '+'), (3, 'c', '*')) v(n, x, sep);
SELECT array_agg(carrier ORDER BY carrier) AS carriers FROM airlines WHERE carrier > 'M';
SELECT array_agg(DISTINCT dest ORDER BY dest) FROM flights WHERE carrier = 'AS';
SELECT carrier, array_agg(DISTINCT origin ORDER BY origin DESC) FROM flights GROUP BY carrier ORDER BY carrier;
SELECT month, array_agg(flight ORDER BY time_hour, flight) AS flights FROM flights WHERE carrier = 'YV' GROUP BY month ORDER BY month;
SELECT array_agg(discount ORDER BY order_id) AS d FROM orders WHERE order_id <= 100008;
SELECT array_agg(salary ORDER BY salary NULLS FIRST, id) FILTER (WHERE dept = 'Sales') FROM employees;
SELECT (array_agg(name ORDER BY salary DESC NULLS LAST, id))[1:3] AS best_paid FROM employees;
SELECT dept, (array_agg(name ORDER BY hired DESC))[1] AS newest, array_length(array_agg(id), 1) AS n FROM employees
GROUP BY dept ORDER BY dept NULLS LAST;
SELECT cardinality(array_agg(DISTINCT kind)), array_agg(DISTINCT kind ORDER BY kind) FROM events;
SELECT array_agg(x ORDER BY x DESC NULLS LAST) AS a, array_agg(x ORDER BY x) FILTER (WHERE x > 1) AS f
FROM (VALUES (1), (3), (null), (2)) v(x);
SELECT array_agg(ARRAY[a, b] ORDER BY a) AS nested FROM (VALUES (1, 2), (3, 4)) v(a, b);
SELECT array_to_string(array_agg(code ORDER BY code), ',', '?') FROM (VALUES ('b'), (null), ('a')) v(code);
SELECT array_agg(da ORDER BY id) AS dates, array_agg(b ORDER BY id) AS flags FROM t_types WHERE id < 7;
SELECT json_agg(carrier ORDER BY carrier) AS j FROM airlines WHERE carrier < 'B';
SELECT jsonb_object_agg(carrier, name ORDER BY carrier) FROM airlines WHERE carrier < 'B';
SELECT jsonb_agg(DISTINCT quantity ORDER BY quantity) AS q,
  json_object_agg(order_id, quantity ORDER BY order_id) AS o FROM orders WHERE order_id < 100006;

-- Percentiles and mode
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY dep_delay) AS median,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY dep_delay) AS disc FROM flights;
SELECT carrier, percentile_cont(0.9) WITHIN GROUP (ORDER BY arr_delay) FROM flights GROUP BY carrier ORDER BY carrier;
SELECT percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY distance) AS quartiles FROM flights;
SELECT percentile_disc(ARRAY[0, 0.1, 0.5, 0.9, 1]) WITHIN GROUP (ORDER BY salary) AS p FROM employees;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY name COLLATE "C") FROM airlines;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY order_date) AS day,
  percentile_disc(0.5) WITHIN GROUP (ORDER BY unit_price) AS price FROM orders;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY iv::interval) AS i FROM t_types WHERE id IN (1, 2, 9);
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x), percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM generate_series(1, 4) x;
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x DESC) AS from_top,
  percentile_disc(0.25) WITHIN GROUP (ORDER BY x DESC) FROM generate_series(1, 8) x;
SELECT percentile_cont(0) WITHIN GROUP (ORDER BY x) AS lowest,
  percentile_cont(1) WITHIN GROUP (ORDER BY x) AS highest FROM (VALUES (1.5), (9)) v(x);
SELECT percentile_cont(null) WITHIN GROUP (ORDER BY distance), percentile_disc(0.5) WITHIN GROUP (ORDER BY null::int) FROM flights;
SELECT origin, percentile_disc(0.5) WITHIN GROUP (ORDER BY dep_delay) FILTER (WHERE dep_delay > 0) AS late_median
FROM flights GROUP BY 1 ORDER BY 1;
SELECT mode() WITHIN GROUP (ORDER BY carrier) AS carrier, mode() WITHIN GROUP (ORDER BY distance) AS distance FROM flights;
SELECT origin, mode() WITHIN GROUP (ORDER BY dest) FROM flights GROUP BY origin ORDER BY origin;
SELECT mode() WITHIN GROUP (ORDER BY x), mode() WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (2), (2), (3), (3)) v(x);
SELECT dept, percentile_cont(0.5) WITHIN GROUP (ORDER BY bonus) AS median FROM employees GROUP BY dept
ORDER BY median DESC NULLS LAST, dept;
-- fails
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY distance) AS p FROM flights;

-- Hypothetical rows
SELECT rank(100) WITHIN GROUP (ORDER BY dep_delay DESC) AS rank,
  dense_rank(100) WITHIN GROUP (ORDER BY dep_delay DESC) AS dense FROM flights
WHERE dep_delay IS NOT NULL;
SELECT round(percent_rank(60000) WITHIN GROUP (ORDER BY salary)::numeric, 6) AS p,
  round(cume_dist(60000) WITHIN GROUP (ORDER BY salary)::numeric, 6) AS c
FROM employees WHERE salary IS NOT NULL;
SELECT dept, rank(50000) WITHIN GROUP (ORDER BY salary) AS r FROM employees GROUP BY dept ORDER BY dept NULLS LAST;
SELECT rank(3, 'b') WITHIN GROUP (ORDER BY n, t) FROM (VALUES (1, 'a'), (3, 'a'), (3, 'c')) v(n, t);
SELECT rank(5) WITHIN GROUP (ORDER BY x), dense_rank(5) WITHIN GROUP (ORDER BY x), cume_dist(5) WITHIN GROUP (ORDER BY x)
FROM (VALUES (1), (1), (3), (8)) v(x);

-- Statistics
SELECT round(stddev(dep_delay), 6) AS s, round(variance(dep_delay), 6) AS v FROM flights;
SELECT origin, round(stddev_pop(distance), 6) AS pop, round(stddev_samp(distance), 6) AS samp FROM flights GROUP BY origin ORDER BY origin;
SELECT var_pop(x), var_samp(x), stddev_pop(x), stddev_samp(x) FROM (VALUES (2), (4), (4), (4), (5), (5), (7), (9)) v(x);
SELECT var_pop(x) AS v, stddev_pop(x) AS s FROM (VALUES (1.5::float8), (2.5), (3.5)) v(x);
SELECT variance(x) AS v, stddev(x) AS s FROM (VALUES (1.10), (2.20), (3.30)) v(x);
SELECT carrier, round(corr(dep_delay, arr_delay)::numeric, 6) AS corr FROM flights
WHERE carrier IN ('UA', 'DL', 'B6') GROUP BY carrier ORDER BY carrier;
SELECT round(covar_pop(distance, air_time)::numeric, 4), round(covar_samp(distance, air_time)::numeric, 4) FROM flights;
SELECT round(regr_slope(air_time, distance)::numeric, 6) AS slope, round(regr_intercept(air_time, distance)::numeric, 6) AS intercept,
       round(regr_r2(air_time, distance)::numeric, 6) AS r2, regr_count(air_time, distance) AS n FROM flights;
SELECT round(regr_avgx(y, x)::numeric, 6), round(regr_avgy(y, x)::numeric, 6), round(regr_sxx(y, x)::numeric, 4),
  round(regr_syy(y, x)::numeric, 4),
       round(regr_sxy(y, x)::numeric, 4) FROM (SELECT temp AS y, humid AS x FROM weather WHERE origin = 'JFK') w;
SELECT regr_slope(y, x) AS slope, regr_intercept(y, x) AS intercept, regr_r2(y, x) AS r2 FROM (VALUES (1, 1), (3, 2), (5, 3)) v(y, x);
SELECT corr(1, x), regr_r2(1, x), regr_slope(x, 1) FROM generate_series(1, 5) x;
SELECT regr_count(temp, dewp) AS both, count(temp) AS temps, count(wind_gust) AS gusts FROM weather;
SELECT origin, round(corr(temp, dewp)::numeric, 4) AS c, round(avg(temp)::numeric, 3) AS t, round(stddev(temp)::numeric, 4) AS s
FROM weather GROUP BY origin ORDER BY origin;
SELECT origin, month, round(max(temp)::numeric, 2), round(sum(precip)::numeric, 2) FROM weather WHERE month < 4 GROUP BY 1, 2 ORDER BY 1, 2;

-- GROUPING SETS, ROLLUP, CUBE
SELECT origin, count(*) AS n FROM flights GROUP BY ROLLUP (origin) ORDER BY origin NULLS LAST;
SELECT origin, month, count(*) AS n FROM flights WHERE month < 4 GROUP BY ROLLUP (origin, month)
ORDER BY origin NULLS LAST, month NULLS LAST;
SELECT status, quantity > 6, sum(quantity) FROM orders GROUP BY CUBE (status, quantity > 6) ORDER BY 1 NULLS LAST, 2 NULLS LAST;
SELECT origin, carrier, count(*) FROM flights WHERE carrier < 'AT' GROUP BY GROUPING SETS ((origin), (carrier), ())
ORDER BY 1 NULLS LAST, 2 NULLS LAST;
SELECT dept, grouping(dept) AS total, count(*) AS n, sum(salary) AS salaries FROM employees GROUP BY ROLLUP (dept)
ORDER BY grouping(dept), dept NULLS LAST;
SELECT country, segment, GROUPING(country, segment) AS level, count(*) AS n FROM customers WHERE country IN ('DE', 'FR')
GROUP BY CUBE (country, segment) ORDER BY level, country, segment NULLS FIRST;
SELECT coalesce(country, 'all') AS country, count(*) AS n FROM customers GROUP BY ROLLUP (country) ORDER BY count(*) DESC, 1;
SELECT CASE WHEN grouping(origin) = 1 THEN 'all' ELSE origin END AS origin, avg(distance) FROM flights
GROUP BY GROUPING SETS ((origin), ()) ORDER BY 1;
SELECT origin, month, count(*) AS n FROM flights WHERE month < 3 GROUP BY origin, GROUPING SETS ((month), ()) ORDER BY 1, 2 NULLS LAST;
SELECT a, b, c, count(*) FROM (VALUES (1, 1, 1), (1, 2, 1), (2, 1, 1)) v(a, b, c) GROUP BY ROLLUP (a, (b, c))
ORDER BY 1 NULLS LAST, 2 NULLS LAST;
SELECT a, sum(b) AS s FROM (VALUES (1, 10), (null, 20), (1, 30)) v(a, b) GROUP BY ROLLUP (a) ORDER BY grouping(a), a NULLS FIRST;
SELECT a, b, grouping(a), grouping(b), sum(x) FROM (VALUES (1, 'p', 5), (1, 'q', 7), (2, 'p', 9)) v(a, b, x)
GROUP BY CUBE (a, b) ORDER BY 3, 4, 1, 2;
SELECT count(*) AS n FROM flights WHERE false GROUP BY GROUPING SETS ((), (origin));
SELECT category, launched IS NULL, count(*) FROM products GROUP BY ROLLUP (1, 2) HAVING count(*) > 5 ORDER BY 1 NULLS LAST, 2 NULLS LAST, 3;
SELECT extract(year FROM order_date) AS y, extract(quarter FROM order_date) AS q, count(*) AS n FROM orders
GROUP BY ROLLUP (1, 2) ORDER BY 1, 2;

-- GROUP BY and HAVING in other forms
SELECT upper(left(name, 1)) AS initial, count(*) FROM airlines GROUP BY upper(left(name, 1)) HAVING count(*) > 1 ORDER BY initial;
SELECT dest FROM flights GROUP BY dest HAVING sum(distance) > 50000 AND count(DISTINCT origin) = 3 ORDER BY dest;
SELECT carrier FROM flights GROUP BY carrier HAVING avg(dep_delay) > (SELECT avg(dep_delay) FROM flights) ORDER BY carrier;
SELECT carrier AS c, count(*) AS n FROM flights GROUP BY c HAVING count(*) BETWEEN 10 AND 200 ORDER BY n, c;
SELECT (distance / 500) * 500 AS bucket, count(*) AS n, round(avg(air_time)) AS air FROM flights GROUP BY bucket ORDER BY bucket;
SELECT CASE WHEN dep_delay < 0 THEN 'early' WHEN dep_delay <= 15 THEN 'on time' WHEN dep_delay > 15 THEN 'late' END AS kind, count(*) AS n
FROM flights GROUP BY 1 ORDER BY n;
SELECT count(*) FROM flights GROUP BY carrier, origin HAVING count(*) > 400 ORDER BY 1;
SELECT sum(distance), sum(distance) FROM flights;
SELECT max(n) FROM (SELECT dest, count(*) AS n FROM flights GROUP BY dest) d;
SELECT abs(d) AS d, count(*) AS n FROM floats GROUP BY abs(d) HAVING count(*) > 1 OR abs(d) = 'NaN' ORDER BY 1;
SELECT customer_id, count(*) AS n, max(order_date) - min(order_date) AS days FROM orders GROUP BY customer_id HAVING count(*) > 5
ORDER BY customer_id NULLS FIRST LIMIT 10;
SELECT DISTINCT ON (dept) dept, name, salary FROM employees ORDER BY dept NULLS LAST, salary DESC NULLS LAST, id;
SELECT (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id) AS orders, count(*) AS customers
FROM customers c GROUP BY 1 ORDER BY 1;
SELECT product_id, sum(quantity), rank() OVER (ORDER BY sum(quantity) DESC) FROM orders GROUP BY product_id ORDER BY 3, 1 LIMIT 7;
SELECT any_day, n FROM (SELECT time_hour::date AS any_day, count(*) AS n FROM flights GROUP BY 1) d ORDER BY n DESC, any_day LIMIT 5;
SELECT lower(c.segment) AS segment, extract(year FROM o.order_date)::int AS year,
  sum(o.quantity * o.unit_price * (1 - coalesce(o.discount, 0))) AS net
FROM orders o JOIN customers c USING (customer_id) GROUP BY 1, 2 ORDER BY 1 NULLS LAST, 2;
-- fails
SELECT carrier, dest, count(*) FROM flights GROUP BY carrier;
-- fails
SELECT carrier FROM flights WHERE count(*) > 1 GROUP BY carrier;

-- An output name that is also the name of a column that GROUP BY casts.
SELECT -id AS i, i::text AS d FROM t_types GROUP BY -id, i::text ORDER BY 1, 2;
SELECT -id AS i, q.i::text AS d FROM t_types q GROUP BY ROLLUP (-id, q.i::text) ORDER BY i, d;
SELECT max(id) AS i, i::bigint::text AS d FROM t_types GROUP BY i::bigint::text ORDER BY i DESC LIMIT 3;
SELECT * FROM (SELECT -id AS i, count(*) AS n FROM t_types GROUP BY -id, i::bigint ORDER BY 1 LIMIT 2) q ORDER BY 1;

-- The variance of one infinity or NaN is NaN, as it is of several
SELECT var_pop('Infinity'::float8), stddev_pop('Infinity'::real), var_samp('Infinity'::float8), stddev_samp('NaN'::float8), var_pop('NaN'::real),
  stddev_pop('NaN'::float8), variance('-Infinity'::float8), var_pop(-1.5::float8), stddev_pop(0::real);
SELECT id, var_pop(d) AS var_pop, stddev_pop(r) AS stddev_pop, var_samp(d) AS var_samp FROM floats GROUP BY id ORDER BY id;
SELECT var_pop(d), stddev_samp(d), var_samp(r), stddev_pop(r) FROM floats WHERE id BETWEEN 10 AND 20;
SELECT var_pop(d), stddev_samp(d), var_samp(r), stddev_pop(r) FROM floats WHERE id IN (2, 10, 11);
SELECT var_pop(d), stddev_samp(d) FROM floats WHERE id = 20;
SELECT var_pop(x::float8), stddev_pop(x::float8), var_samp(x::float8) FROM (VALUES (100000003), (100000004), (100000006), (100000007)) AS v(x);
-- fails
SELECT var_pop(d) FROM floats WHERE id IN (8, 9);

-- Keys of grouping sets that are expressions, whose literals get their types later
SELECT substr(name, 1, 1) AS s, count(*) AS n, grouping(substr(name, 1, 1)) AS g FROM airlines GROUP BY ROLLUP (substr(name, 1, 1)) ORDER BY g, s;
SELECT id + 1 AS a, mod(id, 2) AS b, count(*) AS n, sum(id + 1) AS s, grouping(mod(id, 2), id + 1) AS g FROM employees WHERE id < 5
  GROUP BY CUBE (id + 1, mod(id, 2)) ORDER BY a NULLS LAST, b NULLS LAST, g;
SELECT b1 + 1 AS a, b1 / 2 > 1.5 AS b, max(b2) AS m FROM nums WHERE b1 BETWEEN -9 AND 9 GROUP BY GROUPING SETS ((b1 + 1, b1 / 2 > 1.5), (b1 / 2 > 1.5), ())
  HAVING count(*) > 0 ORDER BY a NULLS LAST, b NULLS LAST, m;

-- Columns of one expression that are grouped apart
SELECT carrier AS a, carrier AS b, count(*) AS n FROM flights WHERE month = 1 GROUP BY a, ROLLUP (b);
SELECT carrier AS a, carrier AS b, count(*) AS n FROM flights WHERE month = 1 GROUP BY ROLLUP (a, b);
SELECT carrier AS a, carrier AS b, sum(distance) AS d FROM flights WHERE month = 2 GROUP BY 1, ROLLUP (2);
SELECT month + 1 AS a, month + 1 AS b, count(*) AS n, grouping(month + 1) AS g FROM flights WHERE month < 4 GROUP BY a, ROLLUP (b) ORDER BY 1, 2;
SELECT carrier, carrier AS b, count(*) AS n FROM flights WHERE month = 1 GROUP BY CUBE (carrier, b);
SELECT carrier AS b, count(*) AS n FROM flights WHERE month = 1 GROUP BY carrier, ROLLUP (b) ORDER BY 1, 2;
SELECT g AS a, g AS b FROM generate_series(1, 3) g GROUP BY a, ROLLUP (b) ORDER BY 1, 2;
SELECT month AS a, carrier AS b, count(*) AS n FROM flights WHERE month < 3 AND carrier < 'B' GROUP BY a, ROLLUP (b) ORDER BY 1, 2;

-- refused: the value of the hypothetical row is NULL in some of the sets
SELECT month, rank(month) WITHIN GROUP (ORDER BY day) AS r FROM flights WHERE month < 3 GROUP BY ROLLUP (month) ORDER BY month;
SELECT month, rank(3) WITHIN GROUP (ORDER BY day) AS r FROM flights WHERE month < 3 GROUP BY ROLLUP (month) ORDER BY month;
SELECT month, rank(month) WITHIN GROUP (ORDER BY day) AS r FROM flights WHERE month < 3 GROUP BY month ORDER BY month;

-- A list of keys in parentheses
SELECT a, b, count(*) AS n FROM (VALUES (1, 2), (1, 3), (1, 2)) AS t(a, b) GROUP BY (a, b) ORDER BY a, b;
SELECT a, b, grouping(a, b) AS g, count(*) AS n FROM (VALUES (1, 2), (1, 3), (1, 2)) AS t(a, b) GROUP BY (a, b) ORDER BY a, b;
SELECT a, sum(b) AS s, grouping(c) AS g FROM (VALUES (1, 2, 3), (1, 3, 3), (2, 2, 4)) AS t(a, b, c) GROUP BY (a), ROLLUP (c) ORDER BY a, g, s;
