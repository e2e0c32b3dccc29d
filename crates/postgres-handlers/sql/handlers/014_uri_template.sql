-- URI templates: literal text and {variable}s (RFC 6570, level 1). A variable stands for one or more characters but
-- "/".

-- The text that a percent-encoded one stands for; NULL when it is none.
CREATE FUNCTION @schema@.percent_decoded(p_text text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF strpos(p_text, '%') = 0 THEN
        RETURN p_text;
    ELSIF p_text ~ '%(?![0-9A-Fa-f]{2})' THEN
        RETURN NULL;
    END IF;
    RETURN convert_from(string_agg(
        CASE left(piece[1], 1) WHEN '%' THEN decode(substr(piece[1], 2), 'hex') ELSE convert_to(piece[1], 'UTF8') END,
        '' ORDER BY ordinality), 'UTF8')
    FROM regexp_matches(p_text, '%[0-9A-Fa-f]{2}|[^%]+', 'g') WITH ORDINALITY AS pieces (piece, ordinality);
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN NULL;
END
$body$;

CREATE FUNCTION @schema@.uri_template_variables(p_template text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT match[1]
    FROM regexp_matches(p_template, '\{([^{}]*)\}', 'g') WITH ORDINALITY AS matches (match, ordinality)
    ORDER BY ordinality
);

-- What is wrong with a template; NULL when nothing is.
CREATE FUNCTION @schema@.uri_template_problem(p_template text) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_variables text[] := @schema@.uri_template_variables(p_template);
BEGIN
    IF p_template !~ '^[A-Za-z][A-Za-z0-9+.-]*:' THEN
        RETURN 'must begin with a scheme, as in "app:///{name}"';
    ELSIF octet_length(p_template) > 2000 THEN
        RETURN 'is longer than 2000 bytes';
    ELSIF cardinality(v_variables) > 20 THEN
        RETURN 'has more than 20 variables';
    ELSIF p_template ~ '[[:space:][:cntrl:]]' THEN
        RETURN 'must not hold blanks; a blank in a URI is %20';
    ELSIF regexp_replace(p_template, '[{][^{}]*[}]', '', 'g') ~ '[{}]' THEN
        RETURN 'has a brace without its other half';
    ELSIF EXISTS (SELECT FROM unnest(v_variables) AS name WHERE name !~ '^[A-Za-z0-9_]+$') THEN
        RETURN 'may hold {variable}s of letters, digits and _, and no other expressions';
    ELSIF p_template LIKE '%}{%' THEN
        RETURN 'has two variables side by side, which cannot be told apart';
    ELSIF (SELECT count(*) <> count(DISTINCT name) FROM unnest(v_variables) AS name) THEN
        RETURN 'has the same variable twice';
    END IF;
    RETURN NULL;
END
$body$;

-- The regular expression that the URIs of a template match, with a group for each variable.
CREATE FUNCTION @schema@.uri_template_pattern(p_template text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '^' || regexp_replace(
    regexp_replace(p_template, '([][().*+?^$|\\])', '\\\1', 'g'),
    '\{[^{}]*\}', '([^/]+?)', 'g') || '$';

-- The symbols of a template: a literal character, "{1}" for any one but "/", "{*}" for none or more of these.
CREATE FUNCTION @schema@.uri_template_symbols(p_template text) RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT symbol
    FROM regexp_matches(p_template, '\{[^{}]*\}|[^{}]', 'g') WITH ORDINALITY AS pieces (piece, place),
        unnest(CASE WHEN length(piece[1]) > 1 THEN ARRAY['{1}', '{*}'] ELSE piece END) WITH ORDINALITY
            AS symbols (symbol, step)
    ORDER BY place, step
);

-- Whether there is a URI that both templates match: the two are walked side by side, each over its symbols, and every
-- pair of places that they can reach with the same text is visited once.
CREATE FUNCTION @schema@.uri_templates_overlap(p_one text, p_other text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_one text[];
    v_other text[];
    v_length integer;
BEGIN
    -- Most templates differ before their first variable, or after their last.
    v_length := least(strpos(p_one || '{', '{'), strpos(p_other || '{', '{')) - 1;
    IF left(p_one, v_length) <> left(p_other, v_length) THEN
        RETURN false;
    END IF;
    v_length := least(strpos(reverse(p_one) || '}', '}'), strpos(reverse(p_other) || '}', '}')) - 1;
    IF right(p_one, v_length) <> right(p_other, v_length) THEN
        RETURN false;
    END IF;

    v_one := @schema@.uri_template_symbols(p_one);
    v_other := @schema@.uri_template_symbols(p_other);
    RETURN EXISTS (
        WITH RECURSIVE place (i, j) AS (
            SELECT 1, 1
            UNION
            SELECT next.i, next.j
            FROM place,
                LATERAL (SELECT v_one[place.i] AS a, v_other[place.j] AS b) AS symbol,
                LATERAL (
                    SELECT place.i + 1, place.j WHERE a = '{*}'
                    UNION ALL
                    SELECT place.i, place.j + 1 WHERE b = '{*}'
                    UNION ALL
                    SELECT place.i + (a <> '{*}')::integer, place.j + (b <> '{*}')::integer
                    WHERE a = b OR (a IN ('{1}', '{*}') AND b <> '/') OR (b IN ('{1}', '{*}') AND a <> '/')
                ) AS next (i, j)
        )
        SELECT FROM place WHERE i > cardinality(v_one) AND j > cardinality(v_other)
    );
END
$body$;

-- The values of the variables in a URI that matches the pattern, decoded; NULL when one of them cannot be decoded.
CREATE FUNCTION @schema@.uri_variables(p_uri text, p_pattern text, p_variables text[]) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_encoded text[] := regexp_match(p_uri, p_pattern);
    v_decoded text[];
BEGIN
    IF cardinality(p_variables) = 0 THEN
        RETURN '{}';
    END IF;
    v_decoded := ARRAY(SELECT @schema@.percent_decoded(value) FROM unnest(v_encoded) AS value);
    IF v_encoded IS NULL OR array_position(v_decoded, NULL) IS NOT NULL THEN
        RETURN NULL;
    END IF;
    RETURN jsonb_object(p_variables, v_decoded);
END
$body$;
