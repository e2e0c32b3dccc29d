SELECT 1

SELECT id, name FROM customers WHERE name = 'Ann' ORDER BY id DESC LIMIT 10

SELECT `order`.`id`, `order`.`a``b` FROM `order`

SELECT "text" AS t, 'it''s', 'a\'b', "a""b", "it's", 'a\\b', 'tab\there', '50\%'

SELECT id FROM customers LIMIT 5, 10

SELECT id FROM customers LIMIT 10 OFFSET 5

SELECT a DIV b, a MOD c, a % b, a XOR b FROM t

SELECT a DIV 2 = b MOD 3 AND c FROM t

SELECT a <=> b, !a, a && b, a || b, a ^ b, a << 1, a >> 1, a & b, a | b, ~a FROM t

SELECT name FROM t WHERE name LIKE 'a%' AND code REGEXP '^[0-9]+$' AND note RLIKE 'x' AND b NOT LIKE 'c\%d'

SELECT name FROM t WHERE name NOT REGEXP 'x' AND name NOT IN ('a', 'b') AND id NOT BETWEEN 1 AND 2

SELECT country, COUNT(*), COUNT(DISTINCT city) FROM customers GROUP BY country WITH ROLLUP

SELECT country, SUM(amount) AS total FROM customers GROUP BY country HAVING total > 10 ORDER BY total DESC

SELECT GROUP_CONCAT(DISTINCT name ORDER BY name SEPARATOR ', ') FROM customers

SELECT DATE_ADD(created, INTERVAL 1 DAY), created + INTERVAL 2 HOUR, NOW() - INTERVAL 30 MINUTE FROM orders

SELECT CONVERT(name USING utf8mb4), CAST(a AS SIGNED), CAST(a AS UNSIGNED), CAST(a AS DECIMAL(10,2)), CAST(a AS CHAR) FROM t

SELECT BINARY name, name COLLATE utf8mb4_bin, _utf8mb4'abc' COLLATE utf8mb4_bin FROM t

SELECT doc->'$.a', doc->>'$.b', JSON_EXTRACT(doc, '$.c') FROM t

SELECT j.a FROM JSON_TABLE('[{"a":1}]', '$[*]' COLUMNS (a INT PATH '$.a')) AS j

SELECT id FROM t USE INDEX (i) WHERE a = 1

SELECT a.id FROM a STRAIGHT_JOIN b ON a.id = b.id

SELECT SQL_NO_CACHE id FROM t

SELECT MATCH (title, body) AGAINST ('text' IN NATURAL LANGUAGE MODE) FROM posts

SELECT EXTRACT(YEAR FROM d), YEAR(d), DATE_FORMAT(d, '%Y-%m'), DATEDIFF(d, e) FROM t

WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT x FROM n

WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT * FROM a JOIN b USING (x)

SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b), SUM(a) OVER w FROM t WINDOW w AS (ORDER BY b)

SELECT IF(a > 1, 'x', 'y'), IFNULL(a, 0), COALESCE(a, b), NULLIF(a, 0) FROM t

SELECT LEFT(name, 3), RIGHT(name, 3), SUBSTRING(name, 2, 3), SUBSTRING(name FROM 2 FOR 3), LOCATE('a', name) FROM t

SELECT TRIM(BOTH 'x' FROM name), POSITION('a' IN name), CHAR_LENGTH(name), REPLACE(name, 'a', 'b') FROM t

SELECT X'4D', 0x4D, b'101', 1e3, .5, -1, 5--1

SELECT id FROM t WHERE a = ? AND b IN (?, ?)

SELECT id FROM t WHERE a = $2 AND b = $1

SELECT id FROM t -- why
WHERE a = 1 # another
AND b = 2 /* a third */

SELECT DATE '2020-01-01', TIMESTAMP '2020-01-01 00:00:00', TIME '10:00:00'

SELECT t.* FROM shop.customers AS t

SELECT id FROM t WHERE (a, b) IN ((1, 2), (3, 4))

SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.id = t.id)

SELECT CASE WHEN a = 1 THEN 'x' ELSE 'y' END FROM t

SELECT a FROM t UNION SELECT b FROM u UNION ALL SELECT c FROM v ORDER BY 1

SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE()

SELECT DISTINCT a FROM t ORDER BY a IS NULL, a

SELECT INET_NTOA(ip), HEX(b), UNHEX('4D'), MD5(a), SHA2(a, 256), UUID() FROM t

SELECT COUNT(*) FROM t PARTITION (p0)

SELECT version(), user(), current_user(), database(), connection_id()

SELECT a AS `1st`, b AS `größe` FROM t

SELECT größe, straße$1 FROM maße

VALUES ROW(1, 2), ROW(3, 4)
