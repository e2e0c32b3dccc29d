-- Whether what a handler answered is an answer.

-- A member that need not be there, and is of one JSON type where it is. Clients refuse the whole answer for a null.
CREATE FUNCTION @schema@.optional_problem(p_object jsonb, p_member text, p_type text) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN p_object ? p_member AND jsonb_typeof(p_object -> p_member) <> p_type
    THEN format('%s must be of type %s where it is there, and is %s', p_member, p_type,
        jsonb_typeof(p_object -> p_member)) END;

CREATE FUNCTION @schema@.contents_problem(p_contents jsonb) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_contents) IS DISTINCT FROM 'object' THEN 'contents of a resource are no object'
    WHEN jsonb_typeof(p_contents -> 'uri') IS DISTINCT FROM 'string' THEN 'contents of a resource have no uri'
    WHEN coalesce(jsonb_typeof(p_contents -> 'text'), 'string') <> 'string'
        OR coalesce(jsonb_typeof(p_contents -> 'blob'), 'string') <> 'string' OR NOT p_contents ?| '{text,blob}'
    THEN 'contents of a resource have neither text nor blob, or one that is no string'
    ELSE coalesce(@schema@.optional_problem(p_contents, 'mimeType', 'string'),
        @schema@.optional_problem(p_contents, '_meta', 'object'))
END;

-- SQL's NULL becomes a null, which no client reads: as the text of a resource it is empty, as in mcp_text.
CREATE FUNCTION @schema@.without_null_texts(p_envelope jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE WHEN jsonb_typeof(p_envelope #> '{result,contents}') = 'array' THEN jsonb_set(p_envelope, '{result,contents}', (
    SELECT coalesce(jsonb_agg(CASE WHEN one -> 'text' = 'null' AND NOT one ? 'blob' THEN one || '{"text": ""}' ELSE one END
        ORDER BY place), '[]')
    FROM jsonb_array_elements(p_envelope #> '{result,contents}') WITH ORDINALITY AS contents (one, place)))
    ELSE p_envelope END;

CREATE FUNCTION @schema@.content_problem(p_block jsonb) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_block) IS DISTINCT FROM 'object' THEN 'a block of content is no object'
    WHEN NOT coalesce(CASE p_block ->> 'type'
        WHEN 'text' THEN jsonb_typeof(p_block -> 'text') = 'string'
        WHEN 'image' THEN jsonb_typeof(p_block -> 'data') = 'string' AND jsonb_typeof(p_block -> 'mimeType') = 'string'
        WHEN 'audio' THEN jsonb_typeof(p_block -> 'data') = 'string' AND jsonb_typeof(p_block -> 'mimeType') = 'string'
        WHEN 'resource_link'
        THEN jsonb_typeof(p_block -> 'uri') = 'string' AND jsonb_typeof(p_block -> 'name') = 'string'
        WHEN 'resource' THEN @schema@.contents_problem(p_block -> 'resource') IS NULL
    END, false)
    THEN format('a block of content of the type %s lacks what belongs to it',
        coalesce((p_block -> 'type')::text, 'nothing'))
    ELSE coalesce(@schema@.optional_problem(p_block, 'mimeType', 'string'),
        @schema@.optional_problem(p_block, 'annotations', 'object'),
        @schema@.optional_problem(p_block, '_meta', 'object'))
END;

CREATE FUNCTION @schema@.message_problem(p_message jsonb) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN CASE
    WHEN jsonb_typeof(p_message) IS DISTINCT FROM 'object' THEN 'a message is no object'
    WHEN coalesce(p_message ->> 'role', '') NOT IN ('user', 'assistant')
    THEN 'a message has neither the role user nor assistant'
    ELSE @schema@.content_problem(p_message -> 'content')
END;

CREATE FUNCTION @schema@.result_problem(p_type text, p_result jsonb, p_output_schema jsonb) RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_list jsonb := p_result -> CASE p_type
        WHEN 'tool' THEN 'content' WHEN 'resource' THEN 'contents' ELSE 'messages' END;
    v_problem text;
BEGIN
    IF jsonb_typeof(p_result) IS DISTINCT FROM 'object' THEN
        RETURN 'the result is no object';
    ELSIF jsonb_typeof(v_list) IS DISTINCT FROM 'array' THEN
        RETURN 'the result lacks its array';
    ELSIF jsonb_typeof(p_result -> '_meta') <> 'object' THEN
        RETURN '_meta of the result is no object';
    ELSIF p_type = 'prompt' AND jsonb_typeof(p_result -> 'description') <> 'string' THEN
        RETURN 'description of the result is no string';
    ELSIF p_type = 'resource' AND (coalesce((p_result -> 'ttlMs')::text, '0') !~ '^[0-9]{1,15}$'
        OR coalesce(p_result ->> 'cacheScope', 'private') NOT IN ('private', 'public')) THEN
        RETURN 'ttlMs is no number of milliseconds, or cacheScope neither private nor public';
    END IF;
    SELECT problem INTO v_problem
    FROM jsonb_array_elements(v_list) AS one,
        LATERAL (SELECT CASE p_type
            WHEN 'tool' THEN @schema@.content_problem(one)
            WHEN 'resource' THEN @schema@.contents_problem(one)
            ELSE @schema@.message_problem(one) END AS problem) AS found
    WHERE problem IS NOT NULL LIMIT 1;
    IF v_problem IS NOT NULL OR p_type <> 'tool' THEN
        RETURN v_problem;
    ELSIF p_result ? 'isError' AND jsonb_typeof(p_result -> 'isError') <> 'boolean' THEN
        RETURN 'isError is neither true nor false';
    ELSIF p_output_schema IS NULL OR p_result -> 'isError' = 'true' THEN
        RETURN NULL;
    ELSIF NOT p_result ? 'structuredContent' THEN
        RETURN 'the tool has an outputSchema and its result no structuredContent';
    END IF;
    RETURN 'structuredContent: ' || nullif(array_to_string(
        @schema@.json_violations(p_output_schema, p_result -> 'structuredContent'), '; '), '');
END
$body$;

-- What is wrong with the envelope that a handler gave back; NULL when nothing is. Of the codes that the protocol keeps
-- for itself only those of JSON-RPC, -32001 and the old -32002 may come from a handler.
CREATE FUNCTION @schema@.envelope_problem(p_envelope jsonb, p_type text, p_request_id jsonb,
    p_output_schema jsonb)
RETURNS text
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_error jsonb := p_envelope -> 'error';
    v_code text := v_error ->> 'code';
BEGIN
    IF p_envelope IS NULL THEN
        RETURN 'the handler returned NULL';
    ELSIF jsonb_typeof(p_envelope) <> 'object' OR p_envelope -> 'jsonrpc' IS DISTINCT FROM '"2.0"' THEN
        RETURN 'the envelope is no JSON-RPC 2.0 response';
    ELSIF p_envelope -> 'id' IS DISTINCT FROM coalesce(p_request_id, 'null') THEN
        RETURN 'the envelope has another id than the request';
    ELSIF (p_envelope ? 'result') = (p_envelope ? 'error') THEN
        RETURN 'the envelope must have either a result or an error';
    ELSIF p_envelope ? 'result' THEN
        RETURN @schema@.result_problem(p_type, p_envelope -> 'result', p_output_schema);
    ELSIF NOT coalesce(
        jsonb_typeof(v_error -> 'code') = 'number' AND jsonb_typeof(v_error -> 'message') = 'string', false
    ) THEN
        RETURN 'the error lacks its code or its message';
    ELSIF v_code !~ '^-?[0-9]{1,9}$' OR (v_code::integer BETWEEN -32768 AND -32000
        AND v_code::integer NOT IN (-32700, -32600, -32601, -32602, -32603, -32001, -32002)) THEN
        RETURN format('handlers must not use the error code %s', left(v_code, 30));
    END IF;
    RETURN NULL;
END
$body$;
