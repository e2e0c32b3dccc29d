-- LIKE, SIMILAR TO and regular expressions.

-- LIKE and ILIKE
SELECT name FROM airlines WHERE name LIKE '%Air%' ORDER BY carrier;
SELECT name FROM airlines WHERE name ILIKE '%JET%' OR name ILIKE 'sky%' ORDER BY carrier;
SELECT count(*) FROM airports WHERE name NOT LIKE '%Airport%';
SELECT 'abc' LIKE 'a_c' AS one, 'abc' LIKE 'a%' AS many, 'abc' LIKE 'abc' AS exact, 'abc' LIKE 'B%' AS other,
  '' LIKE '%' AS blank;
SELECT '100%' LIKE '100\%' AS escaped, '1000' LIKE '100\%' AS not_literal, 'a_b' LIKE 'a\_b' AS underscore,
  'axb' LIKE 'a\_b' AS x;
SELECT '50%' LIKE '50!%' ESCAPE '!' AS bang, 'a_b' LIKE 'a#_b' ESCAPE '#' AS hash,
  'a\b' LIKE 'a\b' ESCAPE '' AS no_escape;
SELECT 'a\b' LIKE 'a\\b' AS doubled, E'a\nb' LIKE 'a_b' AS newline, 'é' LIKE '_' AS one_char,
  '日本' LIKE '__' AS two_chars;
-- fails
SELECT 'abcd' LIKE 'abc\';
SELECT NULL LIKE 'a', 'a' LIKE NULL, NULL NOT LIKE NULL;
SELECT 'ABC' ILIKE 'a%' AS a, 'ÉCOLE' ILIKE 'école' AS b, 'abc' NOT ILIKE 'B%' AS c, 'A%' ILIKE 'a\%' AS d;
SELECT 'abc' ~~ 'a%' AS is_like, 'abc' !~~ 'a%' AS not_like, 'ABC' ~~* 'a%' AS is_ilike, 'ABC' !~~* 'b%' AS not_ilike;
SELECT carrier, name FROM airlines WHERE name LIKE ANY (ARRAY['%Air %', 'United%']) ORDER BY carrier;
SELECT carrier FROM airlines WHERE name LIKE ALL (ARRAY['%a%', '%e%', '%i%']) ORDER BY carrier;
SELECT carrier FROM airlines WHERE name NOT LIKE ALL (ARRAY['%Air%', '%Inc%']) ORDER BY carrier;
SELECT 'abc' LIKE ANY ('{a%,x%}') AS a, 'abc' ILIKE ALL (ARRAY['A%', '%C']) AS b,
  'abc' NOT LIKE ANY (ARRAY['a%', 'x%']) AS c,
       'abc' LIKE ANY (ARRAY['x', NULL]) AS d;
SELECT p, 'tide' LIKE p AS matches FROM (VALUES ('t%'), ('_ide'), ('%x%'), (''), (NULL)) AS v (p)
ORDER BY p COLLATE "C" NULLS LAST;
SELECT dest, count(*) AS n FROM flights WHERE dest LIKE 'S%' AND month = 7 GROUP BY dest ORDER BY n DESC, dest;
SELECT tailnum FROM planes WHERE tailnum LIKE 'N1_1%' ORDER BY tailnum LIMIT 20;
SELECT count(*) FILTER (WHERE name LIKE '%Intl') AS intl, count(*) FILTER (WHERE name ILIKE '%muni%') AS municipal
FROM airports;
SELECT manufacturer, count(*) FROM planes WHERE manufacturer LIKE 'AIRBUS%' OR manufacturer LIKE '%DOUGLAS%'
GROUP BY manufacturer ORDER BY manufacturer;

-- SIMILAR TO
SELECT 'abc' SIMILAR TO 'abc' AS a, 'abc' SIMILAR TO 'a' AS b, 'abc' SIMILAR TO '%(b|d)%' AS c,
  'abc' SIMILAR TO '(b|c)%' AS d;
SELECT 'abc' SIMILAR TO '%b%' AS inside, 'xay' SIMILAR TO '_a_' AS around, 'aaa' SIMILAR TO 'a{3}' AS three,
  'ab' SIMILAR TO 'a+b*' AS plus;
SELECT '2013-01' SIMILAR TO '[0-9]{4}-[0-9]{2}' AS month, 'abc' NOT SIMILAR TO '[[:alpha:]]+' AS not_alpha,
       'a.c' SIMILAR TO 'a.c' AS dot, 'abc' SIMILAR TO 'a.c' AS dot_is_literal;
SELECT 'a%b' SIMILAR TO 'a\%b' AS escaped, 'a%b' SIMILAR TO 'a!%b' ESCAPE '!' AS bang,
  'ab' SIMILAR TO 'a?b?' AS optional,
       NULL SIMILAR TO 'a' AS nothing;
SELECT 'a|b' SIMILAR TO 'a\|b' AS bar, 'A1' SIMILAR TO '[A-Z][0-9]' AS class, 'a1' SIMILAR TO '[^A-Z]%' AS negated,
       'foobar' SIMILAR TO 'foo|bar' AS anchored;
SELECT carrier FROM airlines WHERE carrier SIMILAR TO '[A-Z]{2}' AND name SIMILAR TO '(A|U)%' ORDER BY carrier;
SELECT count(*) AS regular FROM planes WHERE tailnum SIMILAR TO 'N[1-9][0-9]{2}[A-Z]{2}';

-- regular-expression operators
SELECT 'Tidegate' ~ 'gate$' AS a, 'Tidegate' ~ '^gate' AS b, 'Tidegate' ~* 'TIDE' AS c, 'Tidegate' !~ 'x' AS d,
  'Tidegate' !~* 'GATE' AS e;
SELECT 'a' ~ '', '' ~ '^$', NULL ~ 'a', 'a' ~ NULL, 'a.b' ~ 'a\.b', 'axb' ~ 'a\.b';
SELECT name FROM airlines WHERE name ~ '^(A|D).*s' ORDER BY carrier;
SELECT name FROM airlines WHERE name ~* 'AIR(WAYS|LINES)' ORDER BY carrier;
SELECT count(*) FROM flights WHERE tailnum !~ '^N[0-9]+[A-Z]{2}$';
SELECT 'abc' ~ 'a|x' AS alternation, 'ac' ~ 'ab?c' AS optional, 'aac' ~ '^a{2,}c$' AS repeated,
  'b' ~ '[^a-c]' AS negated;
SELECT 'x1' ~ '[[:digit:]]' AS digit, 'x' ~ '[[:upper:]]' AS upper, ' ' ~ '[[:space:]]' AS space,
  '!' ~ '[[:punct:]]' AS punct,
       'ab1' ~ '^[[:alnum:]]+$' AS alnum, 'fF' ~ '^[[:xdigit:]]{2}$' AS hex;
SELECT 'a1_' ~ '^\w+$' AS w, '1 2' ~ '\d\s\d' AS ds, 'a b' ~ '\S\W\S' AS upper_classes, 'x' ~ '\D' AS not_digit;
SELECT 'the cat sat' ~ '\mcat\M' AS whole_word, 'concat' ~ '\mcat' AS inside, 'cat' ~ '\ycat\y' AS boundary,
  'concat' ~ '\Bcat' AS not_boundary;
SELECT E'a\nb' ~ '^b' AS line_start, E'a\nb' ~ 'a.b' AS dot_newline, E'a\nb' ~ '(?n)^b' AS newline_mode,
  'ABC' ~ '(?i)abc' AS inline_flag;
SELECT 'foobar' ~ 'foo(?=bar)' AS ahead, 'foobaz' ~ 'foo(?!bar)' AS not_ahead, 'barfoo' ~ '(?<=bar)foo' AS behind,
       'xfoo' ~ '(?<!bar)foo' AS not_behind;
SELECT 'abab' ~ '^(ab)\1$' AS repeated, 'abba' ~ '^(.)(.)\2\1$' AS palindrome, 'hello' ~ '(.)\1' AS double_letter;
SELECT 'a+b' ~ '***=a+b' AS literal_prefix, 'A' ~ '***:(?i)a' AS advanced;
-- fails
SELECT 'a' ~ '(unclosed';
-- fails
SELECT 'a' ~ '[b-a]';
SELECT 'é' ~ '^.$' AS one, 'É' ~* 'é' AS folded, '日本' ~ '^\w{2}$' AS word, 'ß' ~ '[[:alpha:]]' AS letter;
SELECT word FROM (VALUES ('level'), ('noon'), ('tide'), ('otto'), ('abc')) AS v (word) WHERE word ~ '^(.)(.).?\2\1$'
ORDER BY word;
SELECT tailnum ~ '^N' AS american, count(*) AS n FROM planes GROUP BY 1 ORDER BY 1;
SELECT 'b' ~ ANY (ARRAY['a', 'b']) AS some_pattern, 'b' ~ ALL (ARRAY['a', 'b']) AS all_patterns,
  'B' ~* ANY (ARRAY['b']) AS folded;

-- regexp_match
SELECT regexp_match('foobarbequebaz', '(bar)(beque)') AS groups, regexp_match('foobar', 'o+') AS whole,
  regexp_match('abc', 'x') AS none;
SELECT (regexp_match('flight 1545', '(\w+)\s+(\d+)'))[2] AS number, (regexp_match('abc', '(?:a)(b)'))[1] AS captured;
SELECT regexp_match('ABC', 'b', 'i') AS folded, regexp_match('abc', '(x)?c') AS unmatched_group,
  regexp_match(NULL, 'a') AS nothing;
SELECT (regexp_match(name, '(\w+) Airlines'))[1] AS brand FROM airlines WHERE name ~ 'Airlines' ORDER BY carrier;
SELECT regexp_match('xay', 'a(b)?') AS null_group, regexp_match('a,b', '([^,]*),([^,]*)') AS pair;
-- fails
SELECT regexp_match('abc', 'a', 'g');

-- regexp_matches
SELECT regexp_matches('foobarbequebazilbarfbonk', '(b[^b]+)(b[^b]+)', 'g') AS pairs;
SELECT m[1] AS digits FROM regexp_matches('a1b22c333', '\d+', 'g') AS m;
SELECT regexp_matches('abc', '(x)') AS nothing_found;
SELECT regexp_matches('One two ONE', 'one', 'gi') AS found;
SELECT m[1] AS key, m[2] AS value FROM regexp_matches('a=1;b=22;c=', '(\w)=(\d*)', 'g') WITH ORDINALITY AS t (m, n)
ORDER BY n;
SELECT carrier, (regexp_matches(name, '[A-Z][a-z]+', 'g'))[1] AS word FROM airlines WHERE carrier IN ('DL', 'FL')
ORDER BY carrier, word;
SELECT count(*) AS words FROM airlines, regexp_matches(name, '\w+', 'g');

-- regexp_replace
SELECT regexp_replace('Thomas', '.[mN]a.', 'M') AS a, regexp_replace('aaa', 'a', 'b') AS first_only,
  regexp_replace('aaa', 'a', 'b', 'g') AS all_of_them;
SELECT regexp_replace('foobarbaz', 'b(..)', 'X\1Y', 'g') AS groups, regexp_replace('foobar', 'o+', '[\&]') AS whole,
       regexp_replace('a-b', '-', '\\') AS backslash;
SELECT regexp_replace('Smith, John', '(\w+), (\w+)', '\2 \1') AS swapped,
  regexp_replace('ABC', 'b', 'x', 'i') AS folded,
       regexp_replace('ABCabc', 'B', 'x', 'gi') AS all_folded;
SELECT regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 0, 'i') AS all_of_them,
       regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 1, 3, 'i') AS third;
SELECT regexp_replace('A PostgreSQL function', 'a|e|i|o|u', 'X', 3) AS from_third,
  regexp_replace('aaaa', 'a', 'b', 2, 2) AS second_from_two;
SELECT regexp_replace('  many   spaces  ', '\s+', ' ', 'g') AS squeezed, regexp_replace('abc', '', '-', 'g') AS between,
       regexp_replace('abc', 'x*', '-', 'g') AS blank_matches;
SELECT regexp_replace('(212) 555-0100', '\D', '', 'g') AS digits,
  regexp_replace('1234567', '(\d)(?=(\d{3})+$)', '\1,', 'g') AS grouped;
SELECT regexp_replace(NULL, 'a', 'b'), regexp_replace('a', 'a', NULL), regexp_replace('a', NULL, 'b');
SELECT regexp_replace('price $5', '\$(\d)', '€\1') AS euro, regexp_replace('a', 'a', '$1') AS dollar_is_plain,
       regexp_replace('a', 'a', '${0}') AS braces_are_plain;
SELECT regexp_replace(E'one\ntwo', '^t', 'T', 'n') AS per_line, regexp_replace(E'one\ntwo', '^t', 'T') AS whole_text,
       regexp_replace('a b', 'a b', 'c', 'x') AS expanded;
SELECT carrier, regexp_replace(name, ' (Inc|Co)\.$', '') AS name FROM airlines ORDER BY carrier;
SELECT regexp_replace(tailnum, '^N(\d+)(.*)$', '\1:\2') AS parts FROM planes WHERE tailnum LIKE 'N10%' ORDER BY tailnum
LIMIT 5;
SELECT regexp_replace(lower(name), '[^a-z]+', '-', 'g') AS slug FROM airlines ORDER BY slug;

-- regexp_split_to_array, regexp_split_to_table
SELECT regexp_split_to_array('the quick  brown', '\s+') AS words, regexp_split_to_array('a1b2c', '\d') AS letters,
       regexp_split_to_array('abc', '') AS chars;
SELECT regexp_split_to_array('aXbxc', 'x', 'i') AS folded, regexp_split_to_array('', ',') AS blank,
  regexp_split_to_array('abc', 'z') AS whole;
SELECT regexp_split_to_array(',a,,b,', ',') AS gaps, regexp_split_to_array(NULL, ',') AS nothing;
SELECT part, n FROM regexp_split_to_table('a, b;c', '[,;]\s*') WITH ORDINALITY AS t (part, n) ORDER BY n;
SELECT regexp_split_to_table('hello', '') AS letter;
SELECT letter, count(*) AS n FROM airlines, regexp_split_to_table(lower(name), '') AS letter
WHERE letter ~ '[aeiou]' GROUP BY letter ORDER BY letter;
SELECT (regexp_split_to_array(name, '\s+'))[1] AS first_word, cardinality(regexp_split_to_array(name, '\s+')) AS words
FROM airlines ORDER BY carrier;

-- regexp_count, regexp_instr, regexp_substr, regexp_like
SELECT regexp_count('ABCABCAXYaxy', 'A.') AS a, regexp_count('ABCABCAXYaxy', 'A.', 1, 'i') AS b,
  regexp_count('abc', 'x') AS c,
       regexp_count('aaaa', 'aa', 2) AS d;
SELECT regexp_instr('ABCDEF', 'c(.)(..)') AS none, regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i') AS start,
       regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 1, 'i') AS after,
         regexp_instr('ABCDEF', 'c(.)(..)', 1, 1, 0, 'i', 2) AS sub;
SELECT regexp_instr('abcabc', 'b') AS first, regexp_instr('abcabc', 'b', 3) AS from_three,
  regexp_instr('abcabc', 'b', 1, 2) AS second;
SELECT regexp_substr('ABCDEF', 'B.') AS a, regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i') AS b,
       regexp_substr('ABCDEF', 'c(.)(..)', 1, 1, 'i', 2) AS c, regexp_substr('abc', 'x') AS d;
SELECT regexp_substr('a1b22c333', '\d+', 1, 3) AS third, regexp_substr('a1b22', '\d+', 3) AS later;
SELECT regexp_like('Hello World', 'world') AS a, regexp_like('Hello World', 'world', 'i') AS b,
  regexp_like('a', '^a$') AS c,
       regexp_like(NULL, 'a') AS d;
SELECT name, regexp_count(name, '[aeiou]', 1, 'i') AS vowels FROM airlines ORDER BY vowels DESC, name LIMIT 5;
SELECT regexp_substr(name, '\w+$') AS last_word, count(*) AS n FROM airports GROUP BY 1 HAVING count(*) > 20
ORDER BY n DESC, 1;
SELECT count(*) FROM airports WHERE regexp_like(name, '^[a-m]', 'i');

-- greediness, quantifiers and flags
SELECT substring('<b>one</b><b>two</b>' FROM '<b>(.*)</b>') AS greedy,
  substring('<b>one</b><b>two</b>' FROM '<b>(.*?)</b>') AS lazy;
SELECT regexp_replace('aaa', 'a+?', 'x') AS lazy_plus, regexp_match('abcccc', 'c{2,3}?') AS lazy_braces,
  regexp_match('abcccc', 'c{2,}') AS braces;
SELECT regexp_match('xyz123', '(.*?)(\d+)') AS mixed_lazy, regexp_match('xyz123', '(.*)(\d+)') AS mixed_greedy,
       regexp_match('foo', '(|f|fo|foo)') AS longest;
SELECT regexp_match('foobar', 'foo|foobar') AS longest_alternative,
  regexp_replace('abcd', 'ab|abc', 'X') AS replaced_longest;
SELECT 'a b' ~ 'a[[:blank:]]b' AS blank, 'ab' ~ '[[:<:]]ab[[:>:]]' AS word_marks, E'\t' ~ '\t' AS tab,
  'a' ~ '\x61' AS hex, 'a' ~ '\u0061' AS code;
SELECT ']' ~ '[]]' AS bracket, '-' ~ '[a-]' AS dash, '\' ~ '\\' AS backslash, '^' ~ '[a^]' AS caret,
  'a]' ~ '[a]]' AS closing;
SELECT regexp_replace('2013-01-31', '(\d{4})-(\d\d)-(\d\d)', '\3.\2.\1') AS german_date,
       regexp_match('2013-01-31', '^(\d+)-(\d+)-(\d+)$') AS parts;
SELECT e, e ~ '^[^@\s]+@[^@\s]+\.[a-z]{2,}$' AS valid
FROM (VALUES ('ann@example.com'), ('bob@local'), ('x y@z.org'), ('@none.com'), (NULL)) AS v (e) ORDER BY e NULLS FIRST;
SELECT (regexp_match(path, '[?&]page=(\d+)'))[1]::int AS page, count(*) AS n
FROM (VALUES ('/a?page=2'), ('/b?x=1&page=10'), ('/c'), ('/d?page=2')) AS v (path) GROUP BY 1 ORDER BY 1 NULLS LAST;
SELECT regexp_replace('https://example.com:8080/path', '^(\w+)://([^:/]+)(?::(\d+))?(/.*)?$', '\1 \2 \3 \4') AS parts;
SELECT regexp_replace('camelCaseString', '([A-Z])', '_\1', 'g') AS snake,
  lower(regexp_replace('XMLFile', '([a-z])([A-Z])', '\1_\2', 'g')) AS mixed;
SELECT regexp_replace('x', 'x', 'a\nb') AS letter_n, regexp_replace('x', 'x', E'a\nb') AS newline,
  regexp_replace('xy', '(x)(y)', '\2\2\1\0') AS zero;
SELECT regexp_match(E'k1: v1\nk2: v2', '^k2: (.*)$', 'n') AS line,
  regexp_match(E'k1: v1\nk2: v2', '^k2: (.*)$') AS none;

-- patterns that are columns
SELECT id, s LIKE p AS matches, s NOT LIKE p AS negated, s ILIKE p AS folded FROM texts WHERE kind = 'like' ORDER BY id;
SELECT id, s ~ p AS matches, s ~* p AS folded, s !~ p AS negated, s !~* p AS not_folded FROM texts WHERE kind = 'regex'
ORDER BY id;
SELECT id, regexp_match(s, p) AS found FROM texts WHERE kind = 'regex' ORDER BY id;
SELECT id, m FROM texts, regexp_matches(s, p, 'g') WITH ORDINALITY AS r (m, n)
WHERE kind = 'regex' AND id IN (13, 15, 22, 25) ORDER BY id, n;
SELECT id, regexp_replace(s, p, '<\&>') AS first, regexp_replace(s, p, '<\&>', 'g') AS every_one FROM texts
WHERE kind = 'regex' ORDER BY id;
SELECT id, regexp_count(s, p) AS n, regexp_instr(s, p) AS at, regexp_substr(s, p) AS part, regexp_like(s, p) AS matches
FROM texts WHERE kind = 'regex' ORDER BY id;
SELECT id, regexp_split_to_array(s, p) AS parts FROM texts WHERE kind = 'regex' AND id NOT IN (20, 21) ORDER BY id;
SELECT id, substring(s FROM p) AS part FROM texts WHERE kind = 'regex' ORDER BY id;
SELECT id, s SIMILAR TO p AS matches FROM texts WHERE kind = 'like' ORDER BY id;
SELECT id FROM texts WHERE s LIKE '%\%%' OR s LIKE '%\_%' ORDER BY id;
SELECT id, s FROM texts WHERE s ~ '^\s|\s$' ORDER BY id;
SELECT id, s FROM texts WHERE s ~ '^[+-]?[0-9.,]+$' ORDER BY id;
SELECT id, s FROM texts WHERE s ~ '[^[:ascii:]]' ORDER BY id;
SELECT id, t FROM t_types WHERE t LIKE '%e' OR t LIKE '% _%' ORDER BY id;
SELECT id, t FROM t_types WHERE t ~ '^[[:upper:]]' ORDER BY id;
SELECT id, t FROM t_types WHERE t ILIKE 'zebra' OR t ILIKE 'STRASSE' OR t ILIKE 'Ä' ORDER BY id;
SELECT id, t LIKE 'back\\%' AS doubled, t LIKE '%\_%' AS underscore, t LIKE '100\%' AS percent FROM t_types
WHERE id IN (6, 19, 20, 21) ORDER BY id;
SELECT id, regexp_replace(t, '(\w+)=(\w+);?', '\2=\1 ', 'g') AS swapped FROM t_types WHERE id IN (34, 36, 37)
ORDER BY id;
SELECT customer_id, email FROM customers WHERE email ~ '^user[0-9]{1,2}@.*\.org$' ORDER BY customer_id LIMIT 10;
SELECT regexp_replace(email, '^.*@', '') AS domain, count(*) AS n FROM customers WHERE email IS NOT NULL GROUP BY 1
ORDER BY 2 DESC, 1;
SELECT regexp_replace(email, '^(.)[^@]*', '\1***') AS masked FROM customers WHERE customer_id BETWEEN 1 AND 6
ORDER BY customer_id;
SELECT name FROM products WHERE name SIMILAR TO '(Desk|Lamp) [A-M]' ORDER BY name;
SELECT (regexp_match(name, '^(\w+) ([A-Z])$'))[1] AS thing, count(*) AS n FROM products GROUP BY 1 ORDER BY 1;
SELECT name FROM customers WHERE name LIKE 'J%' AND name NOT LIKE '%\_%' ESCAPE '\' AND name ~ ''''
ORDER BY customer_id;
SELECT count(*) FILTER (WHERE name ~ '[À-ž]') AS with_accents, count(*) FILTER (WHERE name ~ '^\w+ \w+$') AS two_words
FROM customers;
SELECT model, count(*) AS n FROM planes WHERE model ~ '^A3(19|20|21)' GROUP BY model HAVING count(*) > 10
ORDER BY model;
SELECT substring(model FROM '^[A-Z]*-?[0-9]+') AS family, count(*) AS n FROM planes GROUP BY 1 HAVING count(*) >= 100
ORDER BY n DESC, family NULLS LAST;
SELECT CASE WHEN name ~* '\y(intl|international)\y' THEN 'international'
  WHEN name ~* '\y(rgnl|regional)\y' THEN 'regional' ELSE 'other' END AS kind, count(*) AS n
FROM airports GROUP BY 1 ORDER BY 1;

-- References to empty groups, and to groups that have matched nothing
SELECT 'a' ~ '()*\1', '' ~ '()*\1', 'a' ~ '()+\1', 'a' ~ '$()|^\1', 'ab' ~ '$()|^\1', 'a' ~ '.. ()|\1', 'a' ~ '^()\1$', '' ~ '()\1', 'x' ~ '(a)|b\1',
  'b' ~ '(a)|b\1', 'b' ~ '(a)?b\1', 'b' ~ '(a)*b\1', 'aba' ~ '(a)*b\1', '' ~ '(a)*\1', '' ~ '(a*)*\1', 'a' ~ '(a*)*\1', 'a' ~ '^(a*)*\1$',
  'aa' ~ '^(a*)*\1$', 'ab' ~ '^()*(ab)\1$', 'a' ~ '^(){2}\1a$', 'a' ~ '^()?\1a$', 'aa' ~ '^(a|)\1$', '' ~ '^(a|)\1$', 'a' ~ '(^)\1a';
SELECT regexp_match('a', '()*\1'), regexp_match('a', '$()|^\1'), regexp_match('abc', '()*\1(b)'), regexp_match('aXbX', '(.)()*\2b'),
  regexp_match('b', '(a*)*b'), regexp_match('b', '(a)*b'), regexp_match('ab', '(a*)*b'), regexp_match('b', '(|a)*b'), regexp_match('abab', '(z)*?b'),
  regexp_match('b', '()*?\1b'), regexp_match('aab', '(a|)*?\1b'), regexp_match('', '(a|){0,2}?\1'), regexp_match('ab', '(a|b())*$');
SELECT regexp_replace('abc', '()*\1', 'x'), regexp_replace('abc', '$()|^\1', 'x', 'g'), regexp_replace('abc', '()*\1', 'x', 'g');
SELECT s, s ~ '(x)|a\1' AS one, s ~ '(b)$|\1' AS two, s ~ '()q|a\1|$' AS three, regexp_match(s, '(b)|a\1') AS groups
FROM unnest(ARRAY['', 'a', 'b', 'ab', 'aab', 'ax', 'aabb']) s ORDER BY s;
