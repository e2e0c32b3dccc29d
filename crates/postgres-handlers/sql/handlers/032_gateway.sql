-- One call of a tool, a resource or a prompt: who asks, which handler, may it, with what, and its answer. What a role
-- may not execute is not there for it, and it reads the same as for a name that nobody ever gave.

-- Why a call stops before its handler runs, as an answer; NULL when nothing stops it.
CREATE FUNCTION @schema@.refusal(p_handler @schema@.handler, p_is_known boolean, p_arguments jsonb,
    p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_violations text[];
BEGIN
    IF p_handler.requires_auth AND NOT p_is_known THEN
        RETURN @schema@.mcp_error(-32001, 'Authentication required: user_id missing from context', p_request_id);
    ELSIF p_handler.type = 'resource' THEN
        RETURN NULL;
    ELSIF jsonb_typeof(p_arguments) <> 'object' THEN
        RETURN @schema@.mcp_error(-32602,
            format('arguments: must be an object, and is %s', jsonb_typeof(p_arguments)), p_request_id);
    ELSIF p_handler.type = 'prompt' THEN
        v_violations := @schema@.prompt_violations(coalesce(p_handler.metadata -> 'arguments', '[]'), p_arguments);
        IF v_violations <> '{}' THEN
            RETURN @schema@.mcp_error(-32602, array_to_string(v_violations, '; '), p_request_id,
                jsonb_build_object('violations', to_jsonb(v_violations)));
        END IF;
        RETURN NULL;
    END IF;
    v_violations := @schema@.json_violations(p_handler.input_schema, p_arguments);
    IF v_violations <> '{}' THEN
        -- A result and no protocol error: the model reads it and mends its call.
        RETURN @schema@.arguments_error(p_handler.name, v_violations, p_request_id);
    END IF;
    RETURN NULL;
END
$body$;

-- Arguments of prompts are strings, each of them known by name.
CREATE FUNCTION @schema@.prompt_violations(p_declared jsonb, p_arguments jsonb) RETURNS text[]
LANGUAGE sql STABLE PARALLEL SAFE
RETURN ARRAY(
    SELECT format('%s: is missing', one ->> 'name')
    FROM jsonb_array_elements(p_declared) WITH ORDINALITY AS declared (one, place)
    WHERE one -> 'required' = 'true' AND NOT p_arguments ? (one ->> 'name')
    ORDER BY place
) || ARRAY(
    SELECT CASE WHEN EXISTS (SELECT FROM jsonb_array_elements(p_declared) AS one WHERE one ->> 'name' = key)
        THEN format('%s: must be a string, and is %s', key, jsonb_typeof(value))
        ELSE format('%s: is no argument of this prompt; arguments are %s', left(key, 60), coalesce(
            (SELECT string_agg(one ->> 'name', ', ' ORDER BY place)
             FROM jsonb_array_elements(p_declared) WITH ORDINALITY AS declared (one, place)), 'none')) END
    FROM jsonb_each(p_arguments)
    WHERE jsonb_typeof(value) <> 'string'
        OR NOT EXISTS (SELECT FROM jsonb_array_elements(p_declared) AS one WHERE one ->> 'name' = key)
    ORDER BY key
);

-- The whole way of a call once its handler is known, or known to be missing.
CREATE FUNCTION @schema@.answer_call(p_handler @schema@.handler, p_request @schema@.mcp_request,
    p_missing @schema@.mcp_response)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_before text[] := @schema@.current_identity();
    v_is_known boolean := @schema@.enter_identity(p_request.context);
    v_answer @schema@.mcp_response;
    v_failure jsonb;
    v_began_at timestamptz := clock_timestamp();
    v_outcome text := 'refused';
BEGIN
    IF NOT v_is_known AND jsonb_typeof(p_request.context) = 'object' THEN
        -- A handler that reads the context itself must not find a name there that counts for nothing.
        p_request.context := p_request.context - '{user_id,tenant_id}'::text[];
    END IF;
    IF p_handler.name IS NULL THEN
        v_answer := p_missing;
    ELSE
        BEGIN
            v_answer := @schema@.refusal(p_handler, v_is_known, p_request.arguments, p_request.request_id);
        EXCEPTION
            WHEN query_canceled THEN
                v_failure := jsonb_build_object('code', 'cancelled', 'message', SQLERRM, 'detail', SQLERRM);
            -- A schema that leads the check astray: too deep, or wrong in a place that only a reference leads to.
            WHEN OTHERS THEN
                v_failure := jsonb_build_object('code', 'failed', 'message', SQLERRM,
                    'detail', format('the arguments could not be checked: %s: %s', SQLSTATE, SQLERRM));
        END;
        IF v_answer.envelope IS NULL AND v_failure IS NULL THEN
            SELECT * INTO v_answer.envelope, v_failure FROM @schema@.invoke_handler(p_handler, p_request);
            v_outcome := CASE WHEN v_answer.envelope ? 'error' OR v_answer.envelope #> '{result,isError}' = 'true'
                THEN 'failed' ELSE 'done' END;
        END IF;
        IF v_failure IS NOT NULL THEN
            v_outcome := 'failed';
            v_failure := v_failure || jsonb_build_object('reference', gen_random_uuid());
            v_answer.envelope := @schema@.failure_envelope(p_handler, p_request.request_id, v_failure);
        END IF;
        PERFORM @schema@.log_exchange(p_handler, p_request, v_answer.envelope, v_failure, v_began_at, v_outcome);
    END IF;
    PERFORM @schema@.leave_identity(v_before);
    RETURN v_answer;
END
$body$;

CREATE FUNCTION @schema@.call_by_name(p_type text, p_name text, p_arguments jsonb, p_context jsonb,
    p_request_id jsonb, p_meta jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_handler @schema@.handler;
    v_request @schema@.mcp_request;
BEGIN
    SELECT * INTO v_handler FROM @schema@.handler WHERE type = p_type AND name = p_name;
    v_request.arguments := coalesce(p_arguments, '{}');
    v_request.context := p_context;
    v_request.request_id := p_request_id;
    v_request.variables := '{}';
    v_request.meta := p_meta;
    RETURN @schema@.answer_call(v_handler, v_request, CASE WHEN @schema@.is_pgmi()
        THEN @schema@.mcp_error(-32601, format('%s not found: %s', initcap(p_type), left(p_name, 128)), p_request_id)
        ELSE @schema@.mcp_error(-32602, format('Unknown %s: %s', p_type, left(coalesce(p_name, ''), 128)), p_request_id)
        END);
END
$body$;

-- Of several templates that match, the one with most literal text answers, then the longer one; a plain URI before all.
CREATE FUNCTION @schema@.call_by_uri(p_uri text, p_context jsonb, p_request_id jsonb, p_meta jsonb,
    p_missing_code integer)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_uri_length_max CONSTANT integer := 8192;
    v_handler @schema@.handler;
    v_request @schema@.mcp_request;
BEGIN
    IF length(p_uri) <= c_uri_length_max THEN
        SELECT * INTO v_handler FROM @schema@.handler
        WHERE type = 'resource' AND uri_template = p_uri AND uri_variables = '{}';
    END IF;
    IF v_handler.name IS NULL AND length(p_uri) <= c_uri_length_max THEN
        SELECT * INTO v_handler FROM @schema@.handler
        WHERE type = 'resource' AND uri_variables <> '{}'
            -- Each regular expression has to be compiled, so it is tried only where the literal text before it is
            -- there.
            AND CASE WHEN starts_with(p_uri, split_part(uri_template, '{', 1)) THEN p_uri ~ uri_pattern ELSE false END
            AND @schema@.uri_variables(p_uri, uri_pattern, uri_variables) IS NOT NULL
        ORDER BY uri_literals_length DESC, octet_length(uri_template) DESC
        LIMIT 1;
    END IF;
    v_request.arguments := '{}';
    v_request.uri := p_uri;
    v_request.context := p_context;
    v_request.request_id := p_request_id;
    v_request.variables := @schema@.uri_variables(p_uri, v_handler.uri_pattern, v_handler.uri_variables);
    v_request.meta := p_meta;
    RETURN @schema@.answer_call(v_handler, v_request, @schema@.mcp_error(
        CASE WHEN @schema@.is_pgmi() THEN -32601 ELSE p_missing_code END, 'Resource not found', p_request_id, jsonb_build_object('uri', left(p_uri, c_uri_length_max))));
END
$body$;

CREATE FUNCTION @schema@.mcp_call_tool(p_name text, p_arguments jsonb, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('tool', p_name, p_arguments, p_context, p_request_id, NULL);

CREATE FUNCTION @schema@.mcp_call_tool(p_name text, p_arguments jsonb, p_context jsonb, p_request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('tool', p_name, p_arguments, p_context, to_jsonb(p_request_id), NULL);

CREATE FUNCTION @schema@.mcp_read_resource(p_uri text, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_uri(p_uri, p_context, p_request_id, NULL, -32602);

CREATE FUNCTION @schema@.mcp_read_resource(p_uri text, p_context jsonb, p_request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_uri(p_uri, p_context, to_jsonb(p_request_id), NULL, -32602);

CREATE FUNCTION @schema@.mcp_get_prompt(p_name text, p_arguments jsonb, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('prompt', p_name, p_arguments, p_context, p_request_id, NULL);

CREATE FUNCTION @schema@.mcp_get_prompt(p_name text, p_arguments jsonb, p_context jsonb, p_request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql
RETURN @schema@.call_by_name('prompt', p_name, p_arguments, p_context, to_jsonb(p_request_id), NULL);
