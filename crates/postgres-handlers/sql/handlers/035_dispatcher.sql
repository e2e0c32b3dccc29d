-- The dispatcher: one JSON-RPC message in, its answer out. A request whose _meta names a revision is of today's
-- protocol; every other one is of the revisions with a handshake, which nothing here remembers.

-- Why a message is no request; NULL when it is one, or a notification.
CREATE FUNCTION @schema@.message_refusal(p_message jsonb) RETURNS @schema@.mcp_response
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_id jsonb := p_message -> 'id';
BEGIN
    IF jsonb_typeof(p_message) IS DISTINCT FROM 'object' THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: a message is one JSON object', 'null'::jsonb);
    ELSIF jsonb_typeof(v_id) NOT IN ('string', 'number') THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: an id is a string or a number', 'null'::jsonb);
    ELSIF p_message -> 'jsonrpc' IS DISTINCT FROM '"2.0"' THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: jsonrpc must be "2.0"', coalesce(v_id, 'null'));
    ELSIF jsonb_typeof(p_message -> 'method') IS DISTINCT FROM 'string' THEN
        RETURN @schema@.mcp_error(-32600, 'Invalid request: method must be a string', coalesce(v_id, 'null'));
    END IF;
    RETURN NULL;
END
$body$;

-- Why the params of a request will not do; NULL when they will.
CREATE FUNCTION @schema@.params_refusal(p_params jsonb, p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    c_version CONSTANT text := 'io.modelcontextprotocol/protocolVersion';
    c_capabilities CONSTANT text := 'io.modelcontextprotocol/clientCapabilities';
    v_meta jsonb := p_params -> '_meta';
BEGIN
    IF jsonb_typeof(p_params) <> 'object' THEN
        RETURN @schema@.mcp_error(-32602, 'params must be an object', p_request_id);
    ELSIF jsonb_typeof(v_meta) <> 'object' THEN
        RETURN @schema@.mcp_error(-32602, 'params._meta must be an object', p_request_id);
    ELSIF NOT coalesce(v_meta ? c_version, false) THEN
        -- Only today's clients tell what they can do with each request, and they have to tell both.
        RETURN CASE WHEN v_meta ? c_capabilities THEN @schema@.mcp_error(-32602,
            format('params._meta lacks the string %s', to_jsonb(c_version)), p_request_id) END;
    ELSIF jsonb_typeof(v_meta -> c_version) <> 'string' THEN
        RETURN @schema@.mcp_error(-32602,
            format('params._meta: %s must be a string', to_jsonb(c_version)), p_request_id);
    ELSIF v_meta ->> c_version <> @schema@.modern_version() THEN
        RETURN @schema@.mcp_error(-32022, 'Unsupported protocol version', p_request_id, jsonb_build_object(
            'supported', @schema@.modern_version() || @schema@.legacy_versions(), 'requested', v_meta -> c_version));
    ELSIF jsonb_typeof(v_meta -> c_capabilities) IS DISTINCT FROM 'object' THEN
        RETURN @schema@.mcp_error(-32602,
            format('params._meta lacks the object %s', to_jsonb(c_capabilities)), p_request_id);
    END IF;
    RETURN NULL;
END
$body$;

-- A list as one caller sees it.
CREATE FUNCTION @schema@.list_for(p_list text, p_params jsonb, p_context jsonb, p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_before text[] := @schema@.current_identity();
    v_page jsonb;
BEGIN
    IF jsonb_typeof(p_params -> 'cursor') NOT IN ('string', 'null')
        OR @schema@.cursor_name(p_list, p_params ->> 'cursor') IS NULL THEN
        RETURN @schema@.mcp_error(-32602, 'cursor: is none of this list; begin again without one', p_request_id);
    END IF;
    PERFORM @schema@.enter_identity(p_context);
    v_page := @schema@.list_page(p_list, p_params ->> 'cursor');
    PERFORM @schema@.leave_identity(v_before);
    RETURN @schema@.mcp_success(v_page, p_request_id);
END
$body$;

-- A member of params that must be a string; NULL when it is none.
CREATE FUNCTION @schema@.string_param(p_params jsonb, p_name text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(p_params -> p_name) = 'string' THEN p_params ->> p_name END;

CREATE FUNCTION @schema@.route(p_method text, p_params jsonb, p_context jsonb, p_request_id jsonb,
    p_is_modern boolean)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_name text := @schema@.string_param(p_params, CASE p_method WHEN 'resources/read' THEN 'uri' ELSE 'name' END);
BEGIN
    IF p_method IN ('tools/call', 'resources/read', 'prompts/get') AND v_name IS NULL THEN
        RETURN @schema@.mcp_error(-32602, format('params.%s: is missing, or is no string',
            CASE p_method WHEN 'resources/read' THEN 'uri' ELSE 'name' END), p_request_id);
    END IF;
    CASE p_method
        WHEN 'tools/call' THEN
            RETURN @schema@.call_by_name('tool', v_name, p_params -> 'arguments', p_context, p_request_id,
                p_params -> '_meta');
        WHEN 'tools/list' THEN
            RETURN @schema@.list_for('tools', p_params, p_context, p_request_id);
        WHEN 'resources/read' THEN
            RETURN @schema@.call_by_uri(v_name, p_context, p_request_id, p_params -> '_meta',
                CASE WHEN p_is_modern THEN -32602 ELSE -32002 END);
        WHEN 'resources/list' THEN
            RETURN @schema@.list_for('resources', p_params, p_context, p_request_id);
        WHEN 'resources/templates/list' THEN
            RETURN @schema@.list_for('resourceTemplates', p_params, p_context, p_request_id);
        WHEN 'prompts/get' THEN
            RETURN @schema@.call_by_name('prompt', v_name, p_params -> 'arguments', p_context, p_request_id,
                p_params -> '_meta');
        WHEN 'prompts/list' THEN
            RETURN @schema@.list_for('prompts', p_params, p_context, p_request_id);
        ELSE
            IF p_method = 'server/discover' AND p_is_modern THEN
                RETURN @schema@.mcp_discover(p_request_id);
            ELSIF p_method = 'server/discover' THEN
                RETURN @schema@.mcp_error(-32602,
                    'params._meta lacks "io.modelcontextprotocol/protocolVersion"', p_request_id);
            ELSIF p_method = 'initialize' AND NOT p_is_modern THEN
                RETURN @schema@.mcp_initialize(p_params, p_request_id);
            ELSIF p_method = 'ping' AND NOT p_is_modern THEN
                RETURN @schema@.mcp_ping(p_request_id);
            END IF;
            RETURN @schema@.mcp_error(-32601, format('Method not found: %s', left(p_method, 100)), p_request_id);
    END CASE;
END
$body$;

-- An answer as a modern client expects it: how it ended, how long it may be kept and by whom, and who answered. Lists
-- and resources depend on who asks, so no shared cache may keep them.
CREATE FUNCTION @schema@.modern_envelope(p_envelope jsonb, p_method text) RETURNS jsonb
LANGUAGE sql STABLE
RETURN CASE
    WHEN p_envelope #> '{error,code}' = '-32002' THEN jsonb_set(p_envelope, '{error,code}', '-32602')
    WHEN NOT p_envelope ? 'result' THEN p_envelope
    ELSE jsonb_set(p_envelope, '{result}',
        CASE WHEN p_method LIKE '%/list' THEN '{"ttlMs": 60000, "cacheScope": "private"}'::jsonb
             WHEN p_method = 'server/discover' THEN '{"ttlMs": 60000, "cacheScope": "public"}'
             WHEN p_method = 'resources/read' THEN '{"ttlMs": 0, "cacheScope": "private"}' ELSE '{}' END
        || (p_envelope -> 'result')
        || jsonb_build_object('resultType', 'complete', '_meta', jsonb_build_object(
            'io.modelcontextprotocol/serverInfo', @schema@.mcp_server_info())
            || coalesce(p_envelope #> '{result,_meta}', '{}')))
END;

-- Older clients take no "true" or "false" for the schema of a property, and refuse the whole list for one.
CREATE FUNCTION @schema@.legacy_schema(p_schema jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_path_exists(p_schema, '$.properties.* ? (@.type() == "boolean")')
    THEN jsonb_set(p_schema, '{properties}', (
        SELECT jsonb_object_agg(key, CASE value WHEN 'true' THEN '{}' WHEN 'false' THEN '{"not": {}}' ELSE value END)
        FROM jsonb_each(p_schema -> 'properties')))
    ELSE p_schema
END;

-- Nor do they know a schema of answers that are no objects.
CREATE FUNCTION @schema@.legacy_tool(p_tool jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN p_tool - 'outputSchema'
    || jsonb_build_object('inputSchema', @schema@.legacy_schema(p_tool -> 'inputSchema'))
    || CASE WHEN p_tool #> '{outputSchema,type}' = '"object"'
        THEN jsonb_build_object('outputSchema', @schema@.legacy_schema(p_tool -> 'outputSchema')) ELSE '{}' END;

-- An answer as older clients know it: without the members that came later, and structured answers only if they are
-- objects.
CREATE FUNCTION @schema@.legacy_envelope(p_envelope jsonb, p_method text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN NOT p_envelope ? 'result' THEN p_envelope
    WHEN p_method = 'tools/list' THEN jsonb_set(p_envelope, '{result,tools}', (
        SELECT coalesce(jsonb_agg(@schema@.legacy_tool(tool) ORDER BY place), '[]')
        FROM jsonb_array_elements(p_envelope #> '{result,tools}') WITH ORDINALITY AS tools (tool, place)))
    ELSE jsonb_set(p_envelope, '{result}', (p_envelope -> 'result') - '{resultType,ttlMs,cacheScope}'::text[]
        - CASE WHEN jsonb_typeof(p_envelope #> '{result,structuredContent}') <> 'object'
            THEN 'structuredContent' ELSE '' END)
END;

CREATE FUNCTION @schema@.mcp_handle_request(p_request jsonb, p_context jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_answer @schema@.mcp_response := @schema@.message_refusal(p_request);
    v_id jsonb := p_request -> 'id';
    v_is_pgmi CONSTANT boolean := @schema@.is_pgmi();
    v_method text;
    v_params jsonb;
    v_is_modern boolean;
BEGIN
    IF v_answer.envelope IS NOT NULL THEN
        RETURN v_answer;
    END IF;
    v_method := p_request ->> 'method';
    IF v_is_pgmi AND v_method = 'notifications/initialized' THEN
        RETURN @schema@.mcp_success('{}', v_id);
    ELSIF v_id IS NULL OR v_method LIKE 'notifications/%' THEN
        -- Notifications are never answered, and nothing that comes as one is carried out.
        RETURN ROW(NULL)::@schema@.mcp_response;
    END IF;
    v_params := coalesce(p_request -> 'params', '{}');
    v_answer := @schema@.params_refusal(v_params, v_id);
    IF v_answer.envelope IS NOT NULL THEN
        RETURN v_answer;
    END IF;
    v_is_modern := coalesce(v_params -> '_meta' ? 'io.modelcontextprotocol/protocolVersion', false);
    -- A handler of pgmi is given the id as a string; the client gets the one that it sent.
    v_answer := @schema@.route(v_method, v_params, p_context,
        CASE WHEN v_is_pgmi THEN to_jsonb(v_id #>> '{}') ELSE v_id END, v_is_modern);
    v_answer.envelope := jsonb_set(v_answer.envelope, '{id}', v_id);
    v_answer.envelope := CASE WHEN v_is_modern THEN @schema@.modern_envelope(v_answer.envelope, v_method)
        ELSE @schema@.legacy_envelope(v_answer.envelope, v_method) END;
    RETURN v_answer;
END
$body$;
