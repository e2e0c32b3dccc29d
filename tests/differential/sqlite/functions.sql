-- Core functions and aggregates: https://www.sqlite.org/lang_corefunc.html, lang_aggfunc.html. The library is built without
-- its mathematical functions.

SELECT abs(-3) AS a, abs(NULL) AS b, abs('x') AS c, abs(-2.5) AS d;
SELECT char(72, 228, 128512) AS a, unicode('ä') AS b, unicode('') AS c;
SELECT coalesce(NULL, NULL, 'z') AS a, ifnull(NULL, 2) AS b, nullif(1, 1) AS c, iif(1 > 2, 'a', 'b') AS d;
SELECT concat('a', NULL, 1) AS a, concat_ws('-', 'a', NULL, 'b') AS b;
SELECT format('%d %5.2f %s %%', 42, 3.14159, 'x') AS a, printf('%08.3f|%-5s|%5s|%x', 3.5, 'ab', 'cd', 255) AS b, format('%,d', 1234567) AS c;
SELECT hex('abc') AS a, unhex('616263') AS b, quote('it''s') AS c, quote(NULL) AS d, quote(x'00ff') AS e;
SELECT instr('hello', 'l') AS a, instr('hello', 'z') AS b, instr('äöü', 'ü') AS c;
SELECT length('äöü') AS a, octet_length('äöü') AS b, length(x'0001') AS c, length(12345) AS d, length(NULL) AS e;
SELECT lower('ABCÄ') AS a, upper('abcä') AS b;
SELECT ltrim('  x ') AS a, rtrim('xxabxx', 'x') AS b, trim('--x--', '-') AS c;
SELECT max(1, 3, 2) AS a, min('b', 'a') AS b, max(1, NULL) AS c;
SELECT replace('banana', 'an', 'AN') AS a, replace('abc', '', 'x') AS b;
SELECT round(2.5) AS a, round(-2.5) AS b, round(2.345, 2) AS c, round(1234.5, -2) AS d, round(1) AS e;
SELECT sign(-3) AS a, sign(0) AS b, sign(2.5) AS c, sign('x') AS d;
SELECT substr('hello', 2, 3) AS a, substr('hello', -3) AS b, substr('hello', 2, -1) AS c, substring('hello', 0, 3) AS d;
SELECT typeof(zeroblob(3)) AS a, hex(zeroblob(3)) AS b;
SELECT likely(1) AS a, unlikely(0) AS b, likelihood(1, 0.5) AS c;
SELECT soundex('Robert') AS a;
SELECT name, upper(name) AS u, substr(name, 1, 2) AS s FROM item ORDER BY id;
SELECT group_concat(name, ', ') AS names FROM (SELECT name FROM item ORDER BY id);
SELECT string_agg(label, '/' ORDER BY label DESC) AS labels FROM node;
SELECT item_id, group_concat(amount ORDER BY amount) AS amounts FROM sale GROUP BY item_id ORDER BY item_id;
SELECT count(DISTINCT item_id) AS a, min(day) AS b, max(day) AS c, avg(amount) AS d, total(amount) AS e FROM sale;
SELECT count(*) FILTER (WHERE amount > 3) AS many, sum(amount) FILTER (WHERE item_id = 1) AS one FROM sale;
