-- Whether a value is what a JSON Schema asks for, all that is wrong at once.
--
-- Covered: type, enum, const, references within the schema, the keywords of objects, arrays, strings and numbers, and
-- allOf, anyOf, oneOf, not, if. Not covered, and so let through: format, unevaluatedItems, unevaluatedProperties,
-- $anchor, $dynamicRef, content*. Patterns are read as PostgreSQL reads regular expressions. Whoever needs the whole
-- language validates before the call.

-- A place in a value, for a reader.
CREATE FUNCTION @schema@.place(p_path text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(nullif(p_path, ''), 'the whole');

CREATE FUNCTION @schema@.is_of_type(p_value jsonb, p_type text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN jsonb_typeof(p_value) = p_type
    OR (p_type = 'integer' AND CASE jsonb_typeof(p_value)
        WHEN 'number' THEN p_value::numeric = trunc(p_value::numeric) ELSE false END);

CREATE FUNCTION @schema@.number_violations(p_schema jsonb, p_number numeric) RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN array_remove(ARRAY[
    CASE WHEN p_number < (p_schema -> 'minimum')::numeric
        THEN format('must be at least %s', p_schema -> 'minimum') END,
    CASE WHEN p_number > (p_schema -> 'maximum')::numeric
        THEN format('must be at most %s', p_schema -> 'maximum') END,
    CASE WHEN p_number <= (p_schema -> 'exclusiveMinimum')::numeric
        THEN format('must be above %s', p_schema -> 'exclusiveMinimum') END,
    CASE WHEN p_number >= (p_schema -> 'exclusiveMaximum')::numeric
        THEN format('must be below %s', p_schema -> 'exclusiveMaximum') END,
    CASE WHEN mod(p_number, (p_schema -> 'multipleOf')::numeric) <> 0
        THEN format('must be a multiple of %s', p_schema -> 'multipleOf') END
], NULL);

CREATE FUNCTION @schema@.string_violations(p_schema jsonb, p_string text) RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN array_remove(ARRAY[
    CASE WHEN length(p_string) < (p_schema -> 'minLength')::numeric
        THEN format('must have at least %s characters', p_schema -> 'minLength') END,
    CASE WHEN length(p_string) > (p_schema -> 'maxLength')::numeric
        THEN format('must have at most %s characters', p_schema -> 'maxLength') END,
    CASE WHEN p_string !~ (p_schema ->> 'pattern') THEN format('must match %s', p_schema -> 'pattern') END
], NULL);

CREATE FUNCTION @schema@.array_violations(p_schema jsonb, p_array jsonb, p_path text, p_root jsonb,
    p_depth integer, p_until timestamptz)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_length integer := jsonb_array_length(p_array);
    v_prefix_length integer := coalesce(jsonb_array_length(p_schema -> 'prefixItems'), 0);
    v_found text[] := '{}';
    v_matching integer;
    v_item jsonb;
    v_index integer;
BEGIN
    IF v_length < (p_schema -> 'minItems')::numeric THEN
        v_found := v_found || format('%s: must have at least %s items', @schema@.place(p_path), p_schema -> 'minItems');
    END IF;
    IF v_length > (p_schema -> 'maxItems')::numeric THEN
        v_found := v_found || format('%s: must have at most %s items', @schema@.place(p_path), p_schema -> 'maxItems');
    END IF;
    IF p_schema -> 'uniqueItems' = 'true'
        AND (SELECT count(*) <> count(DISTINCT item) FROM jsonb_array_elements(p_array) AS item) THEN
        v_found := v_found || format('%s: its items must differ', @schema@.place(p_path));
    END IF;
    IF p_schema ?| '{items,prefixItems}' THEN
        FOR v_item, v_index IN
            SELECT item, ordinality - 1 FROM jsonb_array_elements(p_array) WITH ORDINALITY AS items (item, ordinality)
        LOOP
            IF v_index < v_prefix_length OR p_schema ? 'items' THEN
                v_found := v_found || @schema@.json_violations(
                    CASE WHEN v_index < v_prefix_length
                        THEN p_schema -> 'prefixItems' -> v_index ELSE p_schema -> 'items' END,
                    v_item, format('%s[%s]', p_path, v_index), p_root, p_depth + 1, p_until);
            END IF;
            EXIT WHEN cardinality(v_found) >= 20;
        END LOOP;
    END IF;
    IF p_schema ? 'contains' THEN
        SELECT count(*) INTO v_matching FROM jsonb_array_elements(p_array) AS item
        WHERE @schema@.json_violations(p_schema -> 'contains', item, p_path, p_root, p_depth + 1, p_until) = '{}';
        IF v_matching < coalesce((p_schema -> 'minContains')::numeric, 1)
            OR v_matching > (p_schema -> 'maxContains')::numeric THEN
            v_found := v_found || format('%s: has %s items of the kind that "contains" counts',
                @schema@.place(p_path), v_matching);
        END IF;
    END IF;
    RETURN v_found;
END
$body$;

-- The names that an object may have, as many as a reader bears.
CREATE FUNCTION @schema@.known_names(p_properties jsonb) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT CASE WHEN count(*) = 0 THEN 'none'
        ELSE string_agg(name, ', ' ORDER BY name) FILTER (WHERE place <= 30)
            || CASE WHEN count(*) > 30 THEN format(', and %s more', count(*) - 30) ELSE '' END END
    FROM (
        SELECT left(name, 60) AS name, row_number() OVER (ORDER BY name) AS place
        FROM jsonb_object_keys(p_properties) AS name
    ) AS names
);

CREATE FUNCTION @schema@.object_violations(p_schema jsonb, p_object jsonb, p_path text, p_root jsonb,
    p_depth integer, p_until timestamptz)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_dot text := CASE WHEN p_path = '' THEN '' ELSE p_path || '.' END;
    v_count integer;
    v_found text[];
    v_member record;
    v_pattern record;
    v_is_known boolean;
BEGIN
    SELECT coalesce(array_agg(format('%s%s: is missing', v_dot, name) ORDER BY ordinality), '{}') INTO v_found
    FROM jsonb_array_elements_text(coalesce(p_schema -> 'required', '[]')) WITH ORDINALITY AS names (name, ordinality)
    WHERE NOT p_object ? name;

    FOR v_member IN SELECT key, value FROM jsonb_each(p_object) LOOP
        v_is_known := coalesce(p_schema -> 'properties' ? v_member.key, false);
        IF v_is_known THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'properties' -> v_member.key, v_member.value, v_dot || v_member.key,
                p_root, p_depth + 1, p_until);
        END IF;
        IF p_schema ? 'patternProperties' THEN
            FOR v_pattern IN
                SELECT key, value FROM jsonb_each(p_schema -> 'patternProperties') WHERE v_member.key ~ key
            LOOP
                v_is_known := true;
                v_found := v_found || @schema@.json_violations(
                    v_pattern.value, v_member.value, v_dot || v_member.key, p_root, p_depth + 1, p_until);
            END LOOP;
        END IF;
        IF NOT v_is_known AND p_schema -> 'additionalProperties' = 'false' THEN
            v_found := v_found || format('%s%s: is not among the known names (%s)',
                v_dot, left(v_member.key, 60), @schema@.known_names(p_schema -> 'properties'));
        ELSIF NOT v_is_known AND p_schema ? 'additionalProperties' THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'additionalProperties', v_member.value, v_dot || v_member.key,
                p_root, p_depth + 1, p_until);
        END IF;
        IF p_schema ? 'propertyNames' THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'propertyNames', to_jsonb(v_member.key), v_dot || v_member.key,
                p_root, p_depth + 1, p_until);
        END IF;
        IF p_schema -> 'dependentRequired' ? v_member.key THEN
            v_found := v_found || ARRAY(
                SELECT format('%s%s: is missing beside %s', v_dot, name, v_member.key)
                FROM jsonb_array_elements_text(p_schema -> 'dependentRequired' -> v_member.key) AS name
                WHERE NOT p_object ? name);
        END IF;
        IF p_schema -> 'dependentSchemas' ? v_member.key THEN
            v_found := v_found || @schema@.json_violations(
                p_schema -> 'dependentSchemas' -> v_member.key, p_object, p_path, p_root, p_depth + 1, p_until);
        END IF;
        EXIT WHEN cardinality(v_found) >= 20;
    END LOOP;

    IF p_schema ?| '{minProperties,maxProperties}' THEN
        SELECT count(*) INTO v_count FROM jsonb_object_keys(p_object);
        IF v_count < (p_schema -> 'minProperties')::numeric OR v_count > (p_schema -> 'maxProperties')::numeric THEN
            v_found := v_found || format('%s: has %s members, which are too few or too many',
                @schema@.place(p_path), v_count);
        END IF;
    END IF;
    RETURN v_found;
END
$body$;

-- What the keywords say that combine schemas.
CREATE FUNCTION @schema@.combination_violations(p_schema jsonb, p_value jsonb, p_path text,
    p_root jsonb, p_depth integer, p_until timestamptz)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_found text[] := '{}';
    v_part jsonb;
    v_matching integer;
BEGIN
    FOR v_part IN SELECT jsonb_array_elements(p_schema -> 'allOf') LOOP
        v_found := v_found || @schema@.json_violations(v_part, p_value, p_path, p_root, p_depth + 1, p_until);
    END LOOP;
    IF p_schema ?| '{anyOf,oneOf}' THEN
        SELECT count(*) INTO v_matching FROM jsonb_array_elements(coalesce(p_schema -> 'anyOf', '[]')) AS part
        WHERE @schema@.json_violations(part, p_value, p_path, p_root, p_depth + 1, p_until) = '{}';
        IF p_schema ? 'anyOf' AND v_matching = 0 THEN
            v_found := v_found || format('%s: is of none of the kinds allowed', @schema@.place(p_path));
        END IF;
        SELECT count(*) INTO v_matching FROM jsonb_array_elements(coalesce(p_schema -> 'oneOf', '[]')) AS part
        WHERE @schema@.json_violations(part, p_value, p_path, p_root, p_depth + 1, p_until) = '{}';
        IF p_schema ? 'oneOf' AND v_matching <> 1 THEN
            v_found := v_found || format('%s: must be of exactly one of the kinds allowed, and is of %s',
                @schema@.place(p_path), v_matching);
        END IF;
    END IF;
    IF p_schema ? 'not'
        AND @schema@.json_violations(p_schema -> 'not', p_value, p_path, p_root, p_depth + 1, p_until) = '{}' THEN
        v_found := v_found || format('%s: is of a kind that is not allowed', @schema@.place(p_path));
    END IF;
    IF p_schema ? 'if' THEN
        v_part := CASE
            WHEN @schema@.json_violations(p_schema -> 'if', p_value, p_path, p_root, p_depth + 1, p_until) = '{}'
            THEN p_schema -> 'then' ELSE p_schema -> 'else' END;
        IF v_part IS NOT NULL THEN
            v_found := v_found || @schema@.json_violations(v_part, p_value, p_path, p_root, p_depth + 1, p_until);
        END IF;
    END IF;
    RETURN v_found;
END
$body$;

-- All that is wrong with a value, the first 20. Schemas that lead to themselves can take for ever, so there is an end
-- to it.
CREATE FUNCTION @schema@.json_violations(p_schema jsonb, p_value jsonb, p_path text DEFAULT '',
    p_root jsonb DEFAULT NULL, p_depth integer DEFAULT 0, p_until timestamptz DEFAULT NULL)
RETURNS text[]
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_root jsonb := coalesce(p_root, p_schema);
    v_until timestamptz := coalesce(p_until, clock_timestamp() + '10 seconds');
    v_type text := jsonb_typeof(p_value);
    v_found text[] := '{}';
BEGIN
    IF p_schema = 'true' OR p_schema = '{}' THEN
        RETURN v_found;
    ELSIF p_schema = 'false' THEN
        RETURN ARRAY[format('%s: is not allowed', @schema@.place(p_path))];
    ELSIF p_depth > 64 THEN
        RETURN ARRAY[format('%s: is nested too deep to be checked', @schema@.place(p_path))];
    ELSIF clock_timestamp() > v_until THEN
        RAISE EXCEPTION 'a schema takes longer than 10 seconds to be checked' USING ERRCODE = 'program_limit_exceeded';
    END IF;

    IF p_schema ? 'type' AND NOT (CASE jsonb_typeof(p_schema -> 'type')
        WHEN 'string' THEN @schema@.is_of_type(p_value, p_schema ->> 'type')
        ELSE EXISTS (
            SELECT FROM jsonb_array_elements_text(p_schema -> 'type') AS one WHERE @schema@.is_of_type(p_value, one))
    END) THEN
        RETURN ARRAY[format('%s: must be %s, and is %s', @schema@.place(p_path),
            translate((p_schema -> 'type')::text, '"[]', ''), v_type)];
    END IF;
    IF p_schema ? 'enum' AND NOT EXISTS (
        SELECT FROM jsonb_array_elements(p_schema -> 'enum') AS one WHERE one = p_value
    ) THEN
        v_found := v_found || format('%s: must be one of %s',
            @schema@.place(p_path), left((p_schema -> 'enum')::text, 200));
    END IF;
    IF p_schema ? 'const' AND p_schema -> 'const' <> p_value THEN
        v_found := v_found || format('%s: must be %s', @schema@.place(p_path), left((p_schema -> 'const')::text, 200));
    END IF;
    IF p_schema ? '$ref' THEN
        v_found := v_found || @schema@.json_violations(
            coalesce(@schema@.schema_at(v_root, p_schema ->> '$ref'), 'true'), p_value, p_path,
            v_root, p_depth + 1, v_until);
    END IF;
    IF p_schema ?| '{allOf,anyOf,oneOf,not,if}' THEN
        v_found := v_found || @schema@.combination_violations(p_schema, p_value, p_path, v_root, p_depth, v_until);
    END IF;
    CASE v_type
        WHEN 'object' THEN
            v_found := v_found || @schema@.object_violations(p_schema, p_value, p_path, v_root, p_depth, v_until);
        WHEN 'array' THEN
            v_found := v_found || @schema@.array_violations(p_schema, p_value, p_path, v_root, p_depth, v_until);
        WHEN 'string' THEN
            v_found := v_found || ARRAY(
                SELECT format('%s: %s', @schema@.place(p_path), one)
                FROM unnest(@schema@.string_violations(p_schema, p_value #>> '{}')) AS one);
        WHEN 'number' THEN
            v_found := v_found || ARRAY(
                SELECT format('%s: %s', @schema@.place(p_path), one)
                FROM unnest(@schema@.number_violations(p_schema, p_value::numeric)) AS one);
        ELSE
            NULL;
    END CASE;
    RETURN v_found[:20];
END
$body$;
