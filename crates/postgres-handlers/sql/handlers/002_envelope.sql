-- What a handler is given and what it gives back.

CREATE TYPE @schema@.mcp_request AS (
    arguments jsonb,
    uri text,
    context jsonb,
    -- As JSON, so that the id 7 stays a number and "7" a string.
    request_id jsonb,
    variables jsonb,
    meta jsonb
);
COMMENT ON TYPE @schema@.mcp_request IS 'What a handler is asked.';
COMMENT ON COLUMN @schema@.mcp_request.arguments IS 'The arguments of a tool or a prompt, always an object there.';
COMMENT ON COLUMN @schema@.mcp_request.uri IS 'The URI of a resource, as it came.';
COMMENT ON COLUMN @schema@.mcp_request.context IS 'Who asks: user_id and tenant_id.';
COMMENT ON COLUMN @schema@.mcp_request.request_id IS 'The id that the answer must carry.';
COMMENT ON COLUMN @schema@.mcp_request.variables IS 'The variables of a URI template, percent-decoded.';
COMMENT ON COLUMN @schema@.mcp_request.meta IS 'The member _meta of the request.';

CREATE TYPE @schema@.mcp_response AS (envelope jsonb);
COMMENT ON TYPE @schema@.mcp_response IS 'What a handler answers: a JSON-RPC 2.0 response.';
