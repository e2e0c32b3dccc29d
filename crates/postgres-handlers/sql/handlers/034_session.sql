-- Who answers, and what it speaks.

CREATE FUNCTION @schema@.legacy_versions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

CREATE FUNCTION @schema@.modern_version() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '2026-07-28';

CREATE FUNCTION @schema@.mcp_server_info() RETURNS jsonb
LANGUAGE sql STABLE
RETURN jsonb_build_object(
    'name', coalesce(nullif(current_setting('mcp.server_name', true), ''), current_database()),
    'version', coalesce(nullif(current_setting('mcp.server_version', true), ''), '1.0.0')
);

CREATE FUNCTION @schema@.mcp_server_capabilities() RETURNS jsonb
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '{"tools": {}, "resources": {}, "prompts": {}}'::jsonb;

-- A revision that we do not speak gets our newest one with a handshake; the client decides whether that will do.
CREATE FUNCTION @schema@.mcp_initialize(p_params jsonb, p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE
RETURN CASE
    WHEN jsonb_typeof(p_params -> 'protocolVersion') IS DISTINCT FROM 'string'
    THEN @schema@.mcp_error(-32602, 'protocolVersion: is missing, or is no string', p_request_id)
    ELSE @schema@.mcp_success(jsonb_build_object(
        'protocolVersion', CASE WHEN p_params ->> 'protocolVersion' = ANY (@schema@.legacy_versions())
            THEN p_params ->> 'protocolVersion' ELSE (@schema@.legacy_versions())[1] END,
        'serverInfo', @schema@.mcp_server_info(),
        'capabilities', @schema@.mcp_server_capabilities()
    ), p_request_id)
END;

CREATE FUNCTION @schema@.mcp_initialize(p_params jsonb, p_request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE
RETURN @schema@.mcp_initialize(p_params, to_jsonb(p_request_id));

CREATE FUNCTION @schema@.mcp_ping(p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_success('{}', p_request_id);

CREATE FUNCTION @schema@.mcp_ping(p_request_id text) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE PARALLEL SAFE
RETURN @schema@.mcp_success('{}', to_jsonb(p_request_id));

CREATE FUNCTION @schema@.mcp_discover(p_request_id jsonb) RETURNS @schema@.mcp_response
LANGUAGE sql STABLE
RETURN @schema@.mcp_success(jsonb_build_object(
    'supportedVersions', to_jsonb(@schema@.modern_version() || @schema@.legacy_versions()),
    'capabilities', @schema@.mcp_server_capabilities()
), p_request_id);
