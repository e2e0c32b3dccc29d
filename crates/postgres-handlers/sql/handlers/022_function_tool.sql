-- Existing functions as tools: the schema of the arguments comes from their types.

-- What values of a type look like in JSON.
CREATE FUNCTION @schema@.json_schema_of_type(p_type oid, p_depth integer DEFAULT 0) RETURNS jsonb
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_type pg_type;
BEGIN
    SELECT * INTO v_type FROM pg_type WHERE oid = p_type;
    IF p_depth > 8 OR p_type IN ('json'::regtype, 'jsonb'::regtype) THEN
        RETURN '{}';
    ELSIF v_type.typtype = 'd' THEN
        RETURN @schema@.json_schema_of_type(v_type.typbasetype, p_depth + 1);
    ELSIF v_type.typtype = 'e' THEN
        RETURN jsonb_build_object('type', 'string', 'enum',
            (SELECT jsonb_agg(enumlabel ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = p_type));
    ELSIF v_type.typcategory = 'A' AND v_type.typelem <> 0 THEN
        RETURN jsonb_build_object('type', 'array', 'items', @schema@.json_schema_of_type(v_type.typelem, p_depth + 1));
    ELSIF v_type.typtype = 'c' THEN
        RETURN jsonb_build_object('type', 'object', 'properties', (
            SELECT coalesce(jsonb_object_agg(attname, @schema@.json_schema_of_type(atttypid, p_depth + 1)), '{}')
            FROM pg_attribute WHERE attrelid = v_type.typrelid AND attnum > 0 AND NOT attisdropped));
    END IF;
    RETURN CASE p_type
        WHEN 'boolean'::regtype THEN '{"type": "boolean"}'
        WHEN 'smallint'::regtype THEN '{"type": "integer", "minimum": -32768, "maximum": 32767}'
        WHEN 'integer'::regtype THEN '{"type": "integer", "minimum": -2147483648, "maximum": 2147483647}'
        WHEN 'bigint'::regtype THEN '{"type": "integer"}'
        WHEN 'real'::regtype THEN '{"type": "number"}'
        WHEN 'double precision'::regtype THEN '{"type": "number"}'
        WHEN 'numeric'::regtype THEN '{"type": "number"}'
        -- Clients of Gemini refuse tools with other formats than "date-time".
        WHEN 'uuid'::regtype THEN '{"type": "string", "description": "UUID"}'
        WHEN 'date'::regtype THEN '{"type": "string", "description": "YYYY-MM-DD"}'
        WHEN 'timestamptz'::regtype THEN '{"type": "string", "format": "date-time"}'
        ELSE '{"type": "string"}'
    END::jsonb;
END
$body$;

-- The arguments that go in, in their order.
CREATE FUNCTION @schema@.function_arguments(p_function regprocedure)
RETURNS TABLE (place integer, name text, type oid, has_default boolean)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT taken.place, taken.name, taken.type, taken.place > pg_proc.pronargs - pg_proc.pronargdefaults
    FROM pg_proc, LATERAL (
        SELECT (row_number() OVER (ORDER BY every.ordinality))::integer AS place,
            pg_proc.proargnames[every.ordinality] AS name, every.type
        FROM unnest(coalesce(pg_proc.proallargtypes, pg_proc.proargtypes::oid[]))
            WITH ORDINALITY AS every (type, ordinality)
        WHERE coalesce(pg_proc.proargmodes[every.ordinality], 'i') IN ('i', 'b')
    ) AS taken
    WHERE pg_proc.oid = p_function
    ORDER BY taken.place;
END;

CREATE FUNCTION @schema@.check_function(p_function regprocedure) RETURNS pg_catalog.pg_proc
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_proc pg_proc;
    v_problem text;
BEGIN
    SELECT * INTO v_proc FROM pg_proc WHERE oid = p_function;
    v_problem := CASE
        WHEN v_proc.oid IS NULL THEN 'there is no such function'
        WHEN v_proc.prokind <> 'f'
        THEN 'it is a procedure, an aggregate or a window function; only plain functions can be tools'
        WHEN v_proc.provariadic <> 0 THEN 'it takes a variable number of arguments'
        WHEN EXISTS (SELECT FROM @schema@.function_arguments(p_function) WHERE coalesce(name, '') = '')
        THEN 'an argument has no name, and callers name what they pass'
        WHEN EXISTS (
            SELECT FROM @schema@.function_arguments(p_function) AS one JOIN pg_type ON pg_type.oid = one.type
            WHERE typtype = 'p'
        ) THEN 'an argument has a type that is settled only with each call'
        WHEN v_proc.prorettype IN ('trigger'::regtype, 'event_trigger'::regtype) THEN 'it is a trigger''s'
        WHEN v_proc.prorettype = 'record'::regtype AND v_proc.proallargtypes IS NULL
        THEN 'it returns rows whose columns are settled only with each call'
        WHEN v_proc.prorettype NOT IN ('void'::regtype, 'record'::regtype)
            AND EXISTS (SELECT FROM pg_type WHERE oid = v_proc.prorettype AND typtype = 'p')
        THEN 'its result has a type that is no value''s'
    END;
    IF v_problem IS NOT NULL THEN
        RAISE EXCEPTION 'function: % cannot be a tool: %', p_function, v_problem
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN v_proc;
END
$body$;

-- The arguments that are no value of their type, which schemas cannot tell of dates, domains and their like.
CREATE FUNCTION @schema@.conversion_violations(p_arguments jsonb, p_names text[], p_types text[])
RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_found text[] := '{}';
    v_name text;
    v_type text;
BEGIN
    FOR v_name, v_type IN
        SELECT name, type FROM unnest(p_names, p_types) AS taken (name, type) WHERE p_arguments ? name
    LOOP
        BEGIN
            EXECUTE format('SELECT FROM jsonb_to_record($1) AS given (%I %s)', v_name, v_type) USING p_arguments;
        EXCEPTION WHEN data_exception OR integrity_constraint_violation OR syntax_error_or_access_rule_violation THEN
            v_found := v_found || format('%s: must be a value of the type %s', v_name, v_type);
        END;
    END LOOP;
    RETURN v_found;
END
$body$;

-- The statement around the call of a function, in two parts, with the arguments given between them.
CREATE FUNCTION @schema@.function_call(p_proc pg_catalog.pg_proc, p_columns text,
    OUT head text, OUT tail text)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_call text := (SELECT format('%I.%I(', nspname, p_proc.proname) FROM pg_namespace WHERE oid = p_proc.pronamespace);
    v_from text := CASE WHEN p_columns = '' THEN ''
        ELSE format(' FROM jsonb_to_record($1) AS given (%s)', p_columns) END;
BEGIN
    IF p_proc.proretset THEN
        head := 'SELECT jsonb_build_object(''rows'', coalesce(jsonb_agg(one) FILTER (WHERE place <= 1000), ''[]''),'
            ' ''truncated'', count(*) > 1000) FROM (SELECT to_jsonb(one.*) AS one, row_number() OVER () AS place'
            || CASE v_from WHEN '' THEN ' FROM ' ELSE v_from || ', LATERAL ' END || v_call;
        tail := ') AS one LIMIT 1001) AS rows';
    ELSIF p_proc.prorettype = 'void'::regtype THEN
        head := 'SELECT to_jsonb((' || v_call;
        tail := '))::text)' || v_from;
    ELSE
        head := 'SELECT to_jsonb(' || v_call;
        tail := '))' || v_from;
    END IF;
END
$body$;

-- The body of the handler that calls a function with the arguments that are there; the others keep their defaults.
CREATE FUNCTION @schema@.function_tool_body(p_function regprocedure, p_proc pg_catalog.pg_proc, p_name text)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_names text[];
    v_types text[];
    v_columns text;
    v_call record;
BEGIN
    -- With -1 for the length: without it "character" would mean one of them.
    SELECT coalesce(array_agg(name ORDER BY place), '{}'),
        coalesce(array_agg(format_type(type, -1) ORDER BY place), '{}'),
        coalesce(string_agg(format('%I %s', name, format_type(type, -1)), ', ' ORDER BY place), '')
    INTO v_names, v_types, v_columns FROM @schema@.function_arguments(p_function);
    v_call := @schema@.function_call(p_proc, v_columns);
    RETURN format($handler$
DECLARE
    v_violations text[] := @schema@.conversion_violations((request).arguments, %1$L, %2$L);
    v_given text := coalesce((
        SELECT string_agg(format('%%1$I => given.%%1$I', name), ', ')
        FROM unnest(%1$L::text[]) AS name WHERE (request).arguments ? name), '');
    v_value jsonb;
BEGIN
    IF v_violations <> '{}' THEN
        RETURN @schema@.arguments_error(%5$L, v_violations, (request).request_id);
    END IF;
    EXECUTE %3$L || v_given || %4$L INTO v_value USING (request).arguments;
    RETURN @schema@.mcp_structured_result(
        CASE WHEN jsonb_typeof(v_value) = 'object' THEN v_value ELSE jsonb_build_object('result', v_value) END,
        (request).request_id);
END
$handler$, v_names, v_types, v_call.head, v_call.tail, p_name);
END
$body$;

-- Offers a function as a tool; members of metadata go before what is inferred. Whoever may not execute the function
-- does not see the tool.
CREATE FUNCTION @schema@.register_function(p_function regprocedure, p_metadata jsonb DEFAULT '{}')
RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET quote_all_identifiers = off AS $body$
DECLARE
    v_proc pg_proc := @schema@.check_function(p_function);
    v_reads boolean := v_proc.provolatile <> 'v';
    v_metadata jsonb;
    v_id text;
BEGIN
    IF p_metadata -> 'rows' = 'true' THEN
        RAISE EXCEPTION 'rows: a function gives its rows at once; register a query to have them come one by one'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT jsonb_build_object(
        'id', 'function:' || p_function::text,
        'type', 'tool',
        'name', v_proc.proname,
        'inputSchema', jsonb_build_object('type', 'object', 'additionalProperties', false,
            'properties', coalesce(
                jsonb_object_agg(name, @schema@.json_schema_of_type(type)) FILTER (WHERE name IS NOT NULL), '{}'),
            'required', coalesce(jsonb_agg(name ORDER BY place) FILTER (WHERE NOT has_default), '[]')),
        'readOnly', v_reads)
    INTO v_metadata FROM @schema@.function_arguments(p_function);
    IF v_reads THEN
        v_metadata := v_metadata || '{"annotations": {"readOnlyHint": true}}';
    END IF;
    IF obj_description(p_function, 'pg_proc') IS NOT NULL THEN
        v_metadata := v_metadata || jsonb_build_object('description', obj_description(p_function, 'pg_proc'));
    END IF;
    v_metadata := v_metadata || coalesce(p_metadata, '{}');
    v_id := @schema@.create_or_replace_mcp_handler(
        v_metadata, @schema@.function_tool_body(p_function, v_proc, v_metadata ->> 'name'));
    UPDATE @schema@.handler SET calls_function = p_function::text WHERE type = 'tool' AND id = v_id;
    RETURN v_id;
END
$body$;
