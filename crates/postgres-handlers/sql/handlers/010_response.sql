-- Builders of answers. Each takes the id as JSON, which is what a handler is given, or as text.
--
-- The bodies after RETURN are bound when they are made: no search_path can lead them astray, and without a clause of
-- their own they are put into the statement that calls them, which costs nothing. They are stable and no more, as what
-- they are made of is: one that claims more is not put in.

CREATE FUNCTION @schema@.mcp_text(p_text text) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN jsonb_build_object('type', 'text', 'text', coalesce(p_text, ''));

CREATE FUNCTION @schema@.mcp_success(result jsonb, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN ROW(jsonb_build_object('jsonrpc', '2.0', 'id', request_id, 'result', result))::@schema@.mcp_response;

CREATE FUNCTION @schema@.mcp_success(result jsonb, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_success(result, to_jsonb(request_id));

CREATE FUNCTION @schema@.mcp_error(code integer, message text, request_id jsonb, data jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN ROW(jsonb_build_object(
    'jsonrpc', '2.0',
    'id', request_id,
    'error', jsonb_build_object('code', code, 'message', coalesce(message, ''))
        || CASE WHEN data IS NULL THEN '{}'::jsonb ELSE jsonb_build_object('data', data) END
))::@schema@.mcp_response;

CREATE FUNCTION @schema@.mcp_error(code integer, message text, request_id text, data jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_error(code, message, to_jsonb(request_id), data);

-- Of structured_content, SQL's NULL means that there is none; JSON's null is a value. This builder and the next one look at
-- a value twice. One that is a query of its own would keep a function of SQL from being put into its caller, and such a
-- function begins anew with each call.
CREATE FUNCTION @schema@.mcp_tool_result(content jsonb, request_id jsonb,
    structured_content jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $body$
BEGIN
    IF structured_content IS NULL THEN
        RETURN @schema@.mcp_success(pg_catalog.jsonb_build_object('content', content), request_id);
    END IF;
    RETURN @schema@.mcp_success(
        pg_catalog.jsonb_build_object('content', content, 'structuredContent', structured_content), request_id);
END
$body$;

CREATE FUNCTION @schema@.mcp_tool_result(content jsonb, request_id text,
    structured_content jsonb DEFAULT NULL)
RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_tool_result(content, to_jsonb(request_id), structured_content);

-- The value, and the same as text for clients that know no structured answers.
CREATE FUNCTION @schema@.mcp_structured_result(structured_content jsonb, request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $body$
DECLARE
    v_value CONSTANT pg_catalog.jsonb := coalesce(structured_content, 'null');
BEGIN
    RETURN @schema@.mcp_success(
        pg_catalog.jsonb_build_object(
            'content', pg_catalog.jsonb_build_array(@schema@.mcp_text(v_value::pg_catalog.text)),
            'structuredContent', v_value
        ),
        request_id
    );
END
$body$;

CREATE FUNCTION @schema@.mcp_structured_result(structured_content jsonb, request_id text)
RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_structured_result(structured_content, to_jsonb(request_id));

-- Whether answers are those of pgmi. The setting is the only switch; a server sets it for its transactions.
CREATE FUNCTION @schema@.is_pgmi() RETURNS boolean
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    CASE coalesce(current_setting('mcp.compatibility', true), '')
        WHEN '' THEN RETURN false;
        WHEN 'pgmi' THEN RETURN true;
        ELSE RAISE EXCEPTION 'mcp.compatibility: % is not known; it can be pgmi, or empty',
            to_jsonb(current_setting('mcp.compatibility')) USING ERRCODE = 'invalid_parameter_value';
    END CASE;
END
$body$;

-- A tool that fails says so in its result: the model reads results and can mend its call, protocol errors it may never
-- see. Under pgmi it is an error of the protocol.
CREATE FUNCTION @schema@.mcp_tool_error(message text, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN @schema@.is_pgmi() THEN @schema@.mcp_error(-32603, message, request_id)
    ELSE @schema@.mcp_success(
        jsonb_build_object('content', jsonb_build_array(@schema@.mcp_text(message)), 'isError', true),
        request_id
    ) END;

CREATE FUNCTION @schema@.mcp_tool_error(message text, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_tool_error(message, to_jsonb(request_id));

-- Wrong arguments are such a failure too: what is wrong with each of them, for the model to mend.
CREATE FUNCTION @schema@.arguments_error(p_name text, p_violations text[], p_request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_message CONSTANT text :=
        format(E'The arguments of %s are wrong:\n- %s', p_name, array_to_string(p_violations, E'\n- '));
BEGIN
    IF @schema@.is_pgmi() THEN
        RETURN @schema@.mcp_error(-32602, v_message, p_request_id);
    END IF;
    RETURN @schema@.mcp_tool_error(v_message, p_request_id);
END
$body$;

CREATE FUNCTION @schema@.mcp_resource_result(contents jsonb, request_id jsonb)
RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_success(jsonb_build_object('contents', contents), request_id);

CREATE FUNCTION @schema@.mcp_resource_result(contents jsonb, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_resource_result(contents, to_jsonb(request_id));

CREATE FUNCTION @schema@.mcp_resource_error(message text, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, request_id);

CREATE FUNCTION @schema@.mcp_resource_error(message text, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, to_jsonb(request_id));

CREATE FUNCTION @schema@.mcp_prompt_result(messages jsonb, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_success(jsonb_build_object('messages', messages), request_id);

CREATE FUNCTION @schema@.mcp_prompt_result(messages jsonb, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_prompt_result(messages, to_jsonb(request_id));

CREATE FUNCTION @schema@.mcp_prompt_error(message text, request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, request_id);

CREATE FUNCTION @schema@.mcp_prompt_error(message text, request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_error(-32603, message, to_jsonb(request_id));

-- Ends a handler with a message that its caller may read. Of every other error the caller reads nothing.
CREATE FUNCTION @schema@.mcp_refuse(message text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'MCP01', MESSAGE = coalesce(message, '');
END
$body$;
