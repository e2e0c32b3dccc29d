-- Dates and times: https://www.sqlite.org/lang_datefunc.html.

SELECT date('2024-02-29') AS a, date('2024-01-31', '+1 month') AS b, date('2024-02-29', '+1 year') AS c, date('2024-03-01', '-1 day') AS d;
SELECT datetime('2024-01-01 12:34:56', '+90 minutes') AS a, datetime('2024-01-01T12:00:00Z') AS b, datetime('2024-01-01 12:00+02:00') AS c;
SELECT time('12:34:56.789') AS a, time('23:59', '+2 minutes') AS b;
SELECT date('2024-05-15', 'start of month') AS a, date('2024-05-15', 'start of year') AS b, date('2024-05-15', 'weekday 0') AS c;
SELECT julianday('2000-01-01 12:00') AS a, julianday('1970-01-01') AS b;
SELECT unixepoch('2024-01-01') AS a, unixepoch('1969-12-31 23:59:59') AS b, datetime(1700000000, 'unixepoch') AS c, date(1700000000, 'auto') AS d;
SELECT strftime('%Y-%m-%d %H:%M:%S', '2024-07-04 05:06:07') AS a, strftime('%j %w %W %s', '2024-07-04') AS b, strftime('%f', '2024-01-01 00:00:01.5') AS c;
SELECT strftime('%e|%I|%p|%R|%u|%G|%V', '2024-12-30 15:04:05') AS a;
SELECT timediff('2024-03-01', '2024-02-28') AS a;
SELECT date('not a date') AS a, date(NULL) AS b, date('2024-13-01') AS c;
SELECT id, date(added) AS d, strftime('%Y', added) AS y FROM item ORDER BY id;
SELECT strftime('%Y-%m', day) AS month, sum(amount) AS amount FROM sale GROUP BY 1 ORDER BY 1;
SELECT day, julianday(day) - julianday('2024-01-01') AS days FROM sale ORDER BY id;
