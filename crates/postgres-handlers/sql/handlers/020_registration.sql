-- How a handler comes and goes: a function of its own, and a row in the registry.

-- Names as a function's: told apart by the hash of the whole, since "a.b" and "a-b" must not meet and names may be
-- longer than the server's. The readable part is for whoever reads a log; its letters are small ones of ASCII in every
-- locale.
CREATE FUNCTION @schema@.handler_function_name(p_type text, p_name text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN format('mcp_%s_%s_%s', p_type, left(lower(regexp_replace(p_name, '[^A-Za-z0-9]+', '_', 'g') COLLATE "C"), 30),
    left(encode(sha256(convert_to(p_type || ':' || p_name, 'UTF8')), 'hex'), 12));

-- As a list shows it.
CREATE FUNCTION @schema@.handler_definition(p_metadata jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_strip_nulls(jsonb_build_object(
        'name', p_metadata -> 'name',
        'title', p_metadata -> 'title',
        'description', p_metadata -> 'description',
        'mimeType', p_metadata -> 'mimeType',
        'size', p_metadata -> 'size'
    ))
    || (
        -- As they are: schemas may hold nulls.
        SELECT coalesce(jsonb_object_agg(key, value), '{}') FROM jsonb_each(p_metadata)
        WHERE key IN ('icons', 'annotations', 'arguments', 'outputSchema')
    )
    || CASE WHEN p_metadata ->> 'type' = 'tool'
        THEN jsonb_build_object('inputSchema',
            '{"type": "object"}'::jsonb || coalesce(p_metadata -> 'inputSchema', '{}'))
        ELSE '{}' END
    || CASE WHEN p_metadata ->> 'type' <> 'resource' THEN '{}'
            WHEN p_metadata ->> 'uriTemplate' LIKE '%{%'
            THEN jsonb_build_object('uriTemplate', p_metadata -> 'uriTemplate')
            ELSE jsonb_build_object('uri', p_metadata -> 'uriTemplate') END
    || CASE WHEN p_metadata ?| '{tags,_meta}'
        THEN jsonb_build_object('_meta', coalesce(p_metadata -> '_meta', '{}')
            || CASE WHEN p_metadata ? 'tags' THEN jsonb_build_object('tags', p_metadata -> 'tags') ELSE '{}' END)
            ELSE '{}' END;

-- Refuses a handler that another one stands in the way of, and names that one.
CREATE FUNCTION @schema@.check_collisions(p_type text, p_id text, p_name text, p_template text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_other @schema@.handler;
BEGIN
    SELECT * INTO v_other FROM @schema@.handler WHERE type = p_type AND name = p_name AND id <> p_id;
    IF FOUND THEN
        RAISE EXCEPTION 'name: % is the name of the % with the id %', to_jsonb(p_name), p_type, to_jsonb(v_other.id)
            USING ERRCODE = 'unique_violation',
                HINT = 'Choose another name, register under that id, or drop that handler first.';
    END IF;
    -- Of two templates that match a URI the one with more literal text answers, then the longer one. Only where neither
    -- is ahead would chance decide.
    SELECT * INTO v_other FROM @schema@.handler
    WHERE type = p_type AND id <> p_id
        AND uri_literals_length = @schema@.uri_literals_length(p_template)
        AND octet_length(uri_template) = octet_length(p_template)
        AND @schema@.uri_templates_overlap(uri_template, p_template)
    ORDER BY id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'uriTemplate: % matches the same URIs as % of the resource with the id %',
            to_jsonb(p_template), to_jsonb(v_other.uri_template), to_jsonb(v_other.id)
            USING ERRCODE = 'unique_violation',
                HINT = 'Give one of them more literal text, so that it is plain which one answers.';
    END IF;
END
$body$;

-- In bytes, as the bridge to MCP counts.
CREATE FUNCTION @schema@.uri_literals_length(p_template text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN octet_length(regexp_replace(p_template, '\{[^{}]*\}', '', 'g'));

-- The query of a handler that gives rows, as the body of its function. It must be one query by itself: one that is only
-- a part of one could end what is put around it.
CREATE FUNCTION @schema@.rows_body(p_function text, p_query text, p_path text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET check_function_bodies = on AS $body$
DECLARE
    v_trial text := format('@schema@.%I(@schema@.mcp_request)', p_function || '_trial');
BEGIN
    EXECUTE format('CREATE FUNCTION @schema@.%I(request @schema@.mcp_request) RETURNS SETOF record LANGUAGE sql'
        ' SET search_path = %s AS %L', p_function || '_trial', p_path, p_query);
    EXECUTE 'DROP FUNCTION ' || v_trial;
    -- A column may have the name of the whole: the star says which of the two is meant.
    RETURN format(E'SELECT to_jsonb(one.*) FROM (\n%s\n) AS one', p_query);
END
$body$;

-- Makes the function, and says which columns its rows have. Its rights are those of whoever calls, so that row-level
-- security and grants bind. It belongs to the owner of the registry, whoever registers it: otherwise the owner could
-- neither grant nor replace it. What is the author's goes before what is ours, since names like "exchange" are
-- anybody's.
CREATE FUNCTION @schema@.create_handler_function(p_metadata jsonb, p_function text, p_body text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp SET check_function_bodies = on AS $body$
DECLARE
    v_returns_rows boolean := coalesce((p_metadata -> 'rows')::boolean, false);
    v_query CONSTANT text := rtrim(btrim(p_body, E' \t\r\n'), ';');
    v_owner name := (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = '@schema@.handler'::regclass);
    v_path text;
    v_detail text;
BEGIN
    IF nullif(btrim(p_body, E' \t\r\n'), '') IS NULL THEN
        RAISE EXCEPTION 'body: is missing' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT concat_ws(', ', string_agg(quote_ident(schema), ', ' ORDER BY ordinality), 'pg_temp') INTO v_path
    FROM jsonb_array_elements_text(coalesce(p_metadata -> 'searchPath', '["public", "@schema@"]'))
        WITH ORDINALITY AS list (schema, ordinality);
    BEGIN
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION @schema@.%I(request @schema@.mcp_request) RETURNS %s LANGUAGE %s'
                ' SECURITY INVOKER SET search_path = %s AS %L',
            p_function,
            CASE WHEN v_returns_rows THEN 'SETOF jsonb' ELSE '@schema@.mcp_response' END,
            CASE WHEN v_returns_rows THEN 'sql' ELSE 'plpgsql' END,
            v_path,
            CASE WHEN v_returns_rows THEN @schema@.rows_body(p_function, v_query, v_path) ELSE p_body END);
    EXCEPTION
        WHEN insufficient_privilege THEN
            RAISE;
        WHEN OTHERS THEN
            GET STACKED DIAGNOSTICS v_detail = PG_EXCEPTION_CONTEXT;
            RAISE EXCEPTION 'body: %', SQLERRM USING ERRCODE = SQLSTATE, DETAIL = left(v_detail, 1000);
    END;
    IF v_owner <> current_user THEN
        EXECUTE format('ALTER FUNCTION @schema@.%I(@schema@.mcp_request) OWNER TO %I', p_function, v_owner);
    END IF;
    RETURN CASE WHEN v_returns_rows THEN @schema@.query_columns(v_query, v_path) END;
END
$body$;

CREATE FUNCTION @schema@.create_or_replace_mcp_handler(metadata jsonb, body text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
#variable_conflict use_column
DECLARE
    p_metadata CONSTANT jsonb := $1;
    p_body CONSTANT text := $2;
    v_problems text[] := @schema@.metadata_problems(p_metadata);
    v_type text := p_metadata ->> 'type';
    v_name text := p_metadata ->> 'name';
    v_id text := coalesce(p_metadata ->> 'id', p_metadata ->> 'name');
    v_template text := p_metadata ->> 'uriTemplate';
    v_function text := @schema@.handler_function_name(v_type, v_name);
    v_before @schema@.handler;
    v_columns text;
BEGIN
    IF v_problems <> '{}' THEN
        RAISE EXCEPTION '%', array_to_string(v_problems[:40], E'\n')
            USING ERRCODE = 'invalid_parameter_value', HINT = 'Nothing was changed.';
    END IF;
    -- From here to the end of the transaction nobody else changes handlers.
    PERFORM FROM @schema@.registry FOR UPDATE;
    PERFORM @schema@.check_collisions(v_type, v_id, v_name, v_template);

    SELECT * INTO v_before FROM @schema@.handler WHERE type = v_type AND id = v_id;
    IF FOUND AND (v_before.name <> v_name
        OR v_before.returns_rows <> coalesce((p_metadata -> 'rows')::boolean, false)) THEN
        EXECUTE format('DROP FUNCTION IF EXISTS %s', v_before.function_signature);
    END IF;
    v_columns := @schema@.create_handler_function(p_metadata, v_function, p_body);

    INSERT INTO @schema@.handler (type, id, name, metadata, definition, input_schema, output_schema,
        uri_template, uri_pattern, uri_variables, uri_literals_length,
        requires_auth, read_only, returns_rows, commits_on_error, isolation_min, function_signature, columns)
    SELECT v_type, v_id, v_name, p_metadata, definition, definition -> 'inputSchema', definition -> 'outputSchema',
        v_template, @schema@.uri_template_pattern(v_template),
        @schema@.uri_template_variables(coalesce(v_template, '')),
        coalesce(@schema@.uri_literals_length(v_template), 0),
        coalesce((p_metadata -> 'requiresAuth')::boolean, true), coalesce((p_metadata -> 'readOnly')::boolean, false),
        coalesce((p_metadata -> 'rows')::boolean, false), coalesce((p_metadata -> 'commitOnError')::boolean, false),
        lower(replace(p_metadata ->> 'minTransactionIsolation', '_', ' ')),
        format('@schema@.%I(@schema@.mcp_request)', v_function), v_columns
    FROM @schema@.handler_definition(p_metadata) AS definition
    ON CONFLICT (type, id) DO UPDATE SET
        name = excluded.name, metadata = excluded.metadata, definition = excluded.definition,
        input_schema = excluded.input_schema, output_schema = excluded.output_schema,
        uri_template = excluded.uri_template, uri_pattern = excluded.uri_pattern,
        uri_variables = excluded.uri_variables, uri_literals_length = excluded.uri_literals_length,
        requires_auth = excluded.requires_auth, read_only = excluded.read_only, returns_rows = excluded.returns_rows,
        commits_on_error = excluded.commits_on_error, isolation_min = excluded.isolation_min,
        function_signature = excluded.function_signature, columns = excluded.columns, calls_function = NULL,
        registered_at = now();
    PERFORM @schema@.grant_handler(v_type, v_id);
    RETURN v_id;
END
$body$;

-- Ends the handlers with this id, of one type or of all; true when there was one.
CREATE FUNCTION @schema@.drop_mcp_handler(p_id text, p_type text DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_signature text;
    v_dropped boolean := false;
BEGIN
    PERFORM FROM @schema@.registry FOR UPDATE;
    FOR v_signature IN
        DELETE FROM @schema@.handler WHERE id = p_id AND (p_type IS NULL OR type = p_type) RETURNING function_signature
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s', v_signature);
        v_dropped := true;
    END LOOP;
    RETURN v_dropped;
END
$body$;
