-- Who answers, and what it speaks.

CREATE FUNCTION @schema@.legacy_versions() RETURNS text[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN ARRAY['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'];

CREATE FUNCTION @schema@.modern_version() RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '2026-07-28';

-- A setting of the session is ahead of what the owner has set for all of them.
CREATE FUNCTION @schema@.mcp_server_info() RETURNS jsonb
LANGUAGE sql STABLE
RETURN (
    SELECT jsonb_build_object(
        'name', coalesce(nullif(current_setting('mcp.server_name', true), ''), server_name, current_database()),
        'version', coalesce(nullif(current_setting('mcp.server_version', true), ''), server_version, '1.0.0')
    )
    FROM @schema@.registry
);

-- Names the server for its clients; NULL ends that. ALTER DATABASE ... SET mcp.server_name needs a superuser, this needs
-- the owner of the schema.
CREATE FUNCTION @schema@.set_mcp_server(p_name text, p_version text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    IF length(p_name) NOT BETWEEN 1 AND 128 OR length(p_version) NOT BETWEEN 1 AND 128 THEN
        RAISE EXCEPTION 'name and version of a server must have 1 to 128 characters, or be NULL'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    UPDATE @schema@.registry SET server_name = p_name, server_version = p_version, revision = revision + 1
    WHERE is_only_row;
END
$body$;

-- What ALTER DATABASE or ALTER ROLE set for new sessions, at this moment; a session that is open keeps the value that it
-- began with.
CREATE FUNCTION @schema@.stored_setting(p_name text) RETURNS text
LANGUAGE sql STABLE
RETURN (
    SELECT nullif(substr(setting, length(p_name) + 2), '')
    FROM pg_db_role_setting, unnest(setconfig) AS setting
    WHERE setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
        AND setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
        AND starts_with(setting, p_name || '=')
    ORDER BY setrole <> 0 DESC, setdatabase <> 0 DESC
    LIMIT 1
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
