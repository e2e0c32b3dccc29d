-- Window functions: https://www.sqlite.org/windowfunctions.html.

SELECT id, row_number() OVER (ORDER BY amount DESC, id) AS n, rank() OVER (ORDER BY day) AS r, dense_rank() OVER (ORDER BY day) AS d FROM sale ORDER BY id;
SELECT id, sum(amount) OVER (ORDER BY id) AS running, sum(amount) OVER (PARTITION BY item_id) AS of_item FROM sale ORDER BY id;
SELECT id, lag(amount) OVER w AS before, lead(amount, 2, -1) OVER w AS later FROM sale WINDOW w AS (ORDER BY id) ORDER BY id;
SELECT id, first_value(amount) OVER w AS f, last_value(amount) OVER w AS l, nth_value(amount, 2) OVER w AS n FROM sale WINDOW w AS (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) ORDER BY id;
SELECT id, ntile(3) OVER (ORDER BY id) AS t, percent_rank() OVER (ORDER BY amount) AS p, cume_dist() OVER (ORDER BY amount) AS c FROM sale ORDER BY id;
SELECT id, sum(amount) OVER (ORDER BY amount RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS near FROM sale ORDER BY id;
SELECT id, group_concat(amount, ',') OVER (ORDER BY id ROWS 2 PRECEDING) AS last FROM sale ORDER BY id;
SELECT id, count(*) OVER (ORDER BY day GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS n FROM sale ORDER BY id;
SELECT id, sum(amount) FILTER (WHERE amount > 2) OVER (ORDER BY id) AS s FROM sale ORDER BY id;
