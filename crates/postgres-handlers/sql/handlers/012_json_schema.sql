-- Whether a JSON Schema is one (2020-12), at any depth, told with the path of what is wrong.

CREATE FUNCTION @schema@.pattern_is_valid(p_pattern text) RETURNS boolean
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM '' ~ p_pattern;
    RETURN true;
EXCEPTION WHEN invalid_regular_expression THEN
    RETURN false;
END
$body$;

-- What is wrong with the value of a keyword whose value is plain: a number, a string, true or false.
CREATE FUNCTION @schema@.plain_keyword_problem(p_keyword text, p_value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_type text := jsonb_typeof(p_value);
BEGIN
    CASE
        WHEN p_keyword IN ('minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum') THEN
            IF v_type <> 'number' THEN
                RETURN 'must be a number';
            END IF;
        WHEN p_keyword = 'multipleOf' THEN
            IF v_type <> 'number' OR p_value::numeric <= 0 THEN
                RETURN 'must be a number above 0';
            END IF;
        WHEN p_keyword IN ('minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties',
                           'minContains', 'maxContains') THEN
            IF v_type <> 'number' OR p_value::numeric < 0 OR p_value::numeric <> trunc(p_value::numeric) THEN
                RETURN 'must be a whole number of 0 or more';
            END IF;
        WHEN p_keyword IN ('uniqueItems', 'readOnly', 'writeOnly', 'deprecated') THEN
            IF v_type <> 'boolean' THEN
                RETURN 'must be true or false';
            END IF;
        WHEN p_keyword = 'pattern' THEN
            IF v_type <> 'string' OR NOT @schema@.pattern_is_valid(p_value #>> '{}') THEN
                RETURN 'must be a regular expression';
            END IF;
        WHEN p_keyword = '$ref' THEN
            IF v_type <> 'string' OR left(p_value #>> '{}', 1) <> '#' THEN
                RETURN 'must stay within this schema, as in "#/$defs/name"';
            END IF;
        WHEN p_keyword = '$schema' THEN
            IF v_type <> 'string'
                OR p_value #>> '{}' !~ '^https?://json-schema[.]org/(draft/2020-12|draft-07)/schema#?$' THEN
                RETURN 'must be "https://json-schema.org/draft/2020-12/schema", or that of draft-07';
            END IF;
        WHEN p_keyword = 'x-mcp-header' THEN
            IF v_type <> 'string' OR p_value #>> '{}' !~ '^[A-Za-z0-9!#$%&''*+.^_`|~-]+$' THEN
                RETURN 'must be the name of a header';
            END IF;
        WHEN p_keyword IN ('title', 'description', 'format', '$id', '$anchor', '$comment', 'contentEncoding',
                           'contentMediaType') THEN
            IF v_type <> 'string' THEN
                RETURN 'must be a string';
            END IF;
        ELSE
            NULL;
    END CASE;
    RETURN NULL;
END
$body$;

-- Everything that is wrong with one keyword's value, but for the schemas in it.
CREATE FUNCTION @schema@.keyword_problem(p_keyword text, p_value jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_types CONSTANT text[] := '{"null",boolean,object,array,number,string,integer}';
    v_type text := jsonb_typeof(p_value);
BEGIN
    CASE
        WHEN p_keyword = 'type' THEN
            IF v_type = 'string' AND p_value #>> '{}' = ANY (c_types) THEN
                RETURN NULL;
            ELSIF v_type = 'array' AND jsonb_array_length(p_value) > 0 AND NOT EXISTS (
                SELECT FROM jsonb_array_elements(p_value) AS one
                WHERE jsonb_typeof(one) <> 'string' OR one #>> '{}' <> ALL (c_types)
            ) THEN
                RETURN NULL;
            END IF;
            RETURN format('%s is no type; types are %s', left(p_value::text, 60), array_to_string(c_types, ', '));
        WHEN p_keyword IN ('properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas') THEN
            IF v_type <> 'object' THEN
                RETURN 'must be an object whose members are schemas';
            ELSIF p_keyword = 'patternProperties' AND EXISTS (
                SELECT FROM jsonb_object_keys(p_value) AS pattern WHERE NOT @schema@.pattern_is_valid(pattern)
            ) THEN
                RETURN 'has a name that is no regular expression';
            END IF;
        WHEN p_keyword = 'required' THEN
            IF v_type <> 'array' OR EXISTS (
                SELECT FROM jsonb_array_elements(p_value) AS one WHERE jsonb_typeof(one) <> 'string'
            ) OR (SELECT count(*) <> count(DISTINCT one) FROM jsonb_array_elements(p_value) AS one) THEN
                RETURN 'must be an array of different names';
            END IF;
        WHEN p_keyword = 'dependentRequired' THEN
            IF v_type <> 'object' OR EXISTS (
                SELECT FROM jsonb_each(p_value) AS one WHERE @schema@.keyword_problem('required', one.value) IS NOT NULL
            ) THEN
                RETURN 'must be an object whose members are arrays of different names';
            END IF;
        WHEN p_keyword = 'enum' THEN
            IF v_type <> 'array' OR p_value = '[]' THEN
                RETURN 'must be an array of at least one value';
            END IF;
        WHEN p_keyword IN ('allOf', 'anyOf', 'oneOf', 'prefixItems') THEN
            IF v_type <> 'array' OR p_value = '[]' THEN
                RETURN 'must be an array of at least one schema';
            END IF;
        ELSE
            RETURN @schema@.plain_keyword_problem(p_keyword, p_value);
    END CASE;
    RETURN NULL;
END
$body$;

-- The problems of a schema, the first 20, each with its path. One that is deeper than 64 or has
-- more than 10,000 parts is refused: the bridge to MCP does not take it either.
CREATE FUNCTION @schema@.json_schema_problems(p_schema jsonb, p_path text, p_root jsonb DEFAULT NULL,
    p_depth integer DEFAULT 0)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_root jsonb := coalesce(p_root, p_schema);
    v_problems text[] := '{}';
    v_problem text;
    v_keyword text;
    v_value jsonb;
    v_part record;
BEGIN
    IF jsonb_typeof(p_schema) = 'boolean' AND p_depth > 0 THEN
        RETURN v_problems;
    ELSIF jsonb_typeof(p_schema) IS DISTINCT FROM 'object' THEN
        RETURN ARRAY[format('%s: %s is no schema; a schema is an object', p_path,
            coalesce(left(p_schema::text, 60), 'nothing'))];
    ELSIF p_depth = 0 AND jsonb_path_exists(p_schema, 'strict $.**{64}') THEN
        RETURN ARRAY[p_path || ': the schema is deeper than 64'];
    ELSIF p_depth = 0 AND (SELECT count(*) > 10000 FROM jsonb_path_query(p_schema, 'strict $.**')) THEN
        RETURN ARRAY[p_path || ': the schema has more than 10000 parts'];
    END IF;

    FOR v_keyword, v_value IN SELECT key, value FROM jsonb_each(p_schema) LOOP
        v_problem := @schema@.keyword_problem(v_keyword, v_value);
        IF v_problem IS NOT NULL THEN
            v_problems := v_problems || format('%s.%s: %s', p_path, v_keyword, v_problem);
        ELSIF v_keyword = '$ref' AND v_value #>> '{}' <> '#' AND (v_value #>> '{}') LIKE '#/%'
            AND coalesce(jsonb_typeof(@schema@.schema_at(v_root, v_value #>> '{}')), '') NOT IN ('object', 'boolean')
        THEN
            v_problems := v_problems || format('%s.$ref: there is no schema at %s', p_path, v_value);
        ELSIF v_keyword IN ('properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas') THEN
            FOR v_part IN SELECT key, value FROM jsonb_each(v_value) LOOP
                v_problems := v_problems || @schema@.json_schema_problems(
                    v_part.value, format('%s.%s.%s', p_path, v_keyword, left(v_part.key, 60)), v_root, p_depth + 1);
                EXIT WHEN cardinality(v_problems) >= 20;
            END LOOP;
        ELSIF v_keyword IN ('allOf', 'anyOf', 'oneOf', 'prefixItems') THEN
            FOR v_part IN SELECT ordinality - 1 AS key, value FROM jsonb_array_elements(v_value) WITH ORDINALITY LOOP
                v_problems := v_problems || @schema@.json_schema_problems(
                    v_part.value, format('%s.%s[%s]', p_path, v_keyword, v_part.key), v_root, p_depth + 1);
                EXIT WHEN cardinality(v_problems) >= 20;
            END LOOP;
        ELSIF v_keyword IN ('items', 'contains', 'additionalProperties', 'propertyNames', 'not', 'if', 'then', 'else',
                            'unevaluatedItems', 'unevaluatedProperties', 'contentSchema') THEN
            v_problems := v_problems || @schema@.json_schema_problems(
                v_value, format('%s.%s', p_path, v_keyword), v_root, p_depth + 1);
        END IF;
        EXIT WHEN cardinality(v_problems) >= 20;
    END LOOP;
    RETURN v_problems[:20];
END
$body$;

-- What a reference of the form "#" or "#/a/b" points at (RFC 6901); NULL when there is nothing.
CREATE FUNCTION @schema@.schema_at(p_root jsonb, p_reference text) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_steps text[];
BEGIN
    IF p_reference = '#' THEN
        RETURN p_root;
    ELSIF p_reference NOT LIKE '#/%' THEN
        RETURN NULL;
    END IF;
    SELECT array_agg(replace(replace(@schema@.percent_decoded(step), '~1', '/'), '~0', '~') ORDER BY ordinality)
    INTO v_steps
    FROM string_to_table(substr(p_reference, 3), '/') WITH ORDINALITY AS steps (step, ordinality);
    RETURN p_root #> v_steps;
END
$body$;
