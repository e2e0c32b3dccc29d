-- Who may dispatch: whoever may execute mcp_handle_request. A handler may be executed by all of them, unless its
-- metadata names roles. The grants themselves are the record; there is no other.

-- What registers and grants, and so is for owners.
CREATE FUNCTION @schema@.is_for_owners(p_function name) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN p_function IN ('create_or_replace_mcp_handler', 'drop_mcp_handler', 'register_function', 'rows_body',
    'create_handler_function', 'check_collisions', 'grant_handler', 'grant_mcp_access', 'revoke_mcp_access',
    'query_columns', 'set_mcp_exchange_log', 'purge_mcp_exchanges', 'set_mcp_identity_check', 'set_mcp_server',
    'register_database_info', 'registry_changed', 'handlers_changed');

CREATE FUNCTION @schema@.dispatching_roles() RETURNS SETOF name
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT DISTINCT pg_roles.rolname
    FROM pg_proc, aclexplode(pg_proc.proacl) AS entry JOIN pg_roles ON pg_roles.oid = entry.grantee
    WHERE pg_proc.pronamespace = '@schema@'::regnamespace AND pg_proc.proname = 'mcp_handle_request'
        AND entry.grantee <> pg_proc.proowner;
END;

CREATE FUNCTION @schema@.grant_handler(p_type text, p_id text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_handler @schema@.handler;
    v_role text;
BEGIN
    SELECT * INTO v_handler FROM @schema@.handler WHERE type = p_type AND id = p_id;
    -- What the handler's last registration granted ends here; a new function is open to PUBLIC until this line.
    EXECUTE format('REVOKE ALL ON FUNCTION %s FROM PUBLIC', v_handler.function_signature);
    FOR v_role IN
        SELECT DISTINCT pg_roles.rolname
        FROM pg_proc, aclexplode(pg_proc.proacl) AS entry JOIN pg_roles ON pg_roles.oid = entry.grantee
        WHERE pg_proc.oid = to_regprocedure(v_handler.function_signature) AND entry.grantee <> pg_proc.proowner
    LOOP
        EXECUTE format('REVOKE ALL ON FUNCTION %s FROM %I', v_handler.function_signature, v_role);
    END LOOP;
    FOR v_role IN
        SELECT jsonb_array_elements_text(v_handler.metadata -> 'roles')
        UNION
        SELECT rolname FROM @schema@.dispatching_roles() AS rolname WHERE NOT v_handler.metadata ? 'roles'
    LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = v_role) THEN
            RAISE EXCEPTION 'roles: there is no role %', to_jsonb(v_role) USING ERRCODE = 'undefined_object';
        END IF;
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', v_handler.function_signature, v_role);
    END LOOP;
END
$body$;

-- Lets a role dispatch requests and execute every handler that names no roles. A function of others in the schema, or
-- one with the rights of its owner, is none of ours: whoever made it says who may execute it.
CREATE FUNCTION @schema@.grant_mcp_access(p_role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    v_function regprocedure;
BEGIN
    -- Two grants at once would trip over each other.
    PERFORM FROM @schema@.registry FOR UPDATE;
    EXECUTE format('GRANT USAGE ON SCHEMA @schema@ TO %s', p_role);
    EXECUTE format('GRANT SELECT ON @schema@.handler, @schema@.registry TO %s', p_role);
    -- Time and role of a line are the server's to say.
    EXECUTE format('GRANT INSERT (type, name, user_id, tenant_id, request_id, duration_ms, outcome, code, reference,'
        ' detail, arguments) ON @schema@.exchange TO %s', p_role);
    FOR v_function IN
        SELECT oid FROM pg_proc
        WHERE pronamespace = '@schema@'::regnamespace AND NOT @schema@.is_for_owners(proname) AND NOT prosecdef
            AND proowner = (SELECT relowner FROM pg_class WHERE oid = '@schema@.handler'::regclass)
            AND NOT EXISTS (
                SELECT FROM @schema@.handler
                WHERE to_regprocedure(function_signature) = pg_proc.oid AND metadata ? 'roles')
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', v_function, p_role);
    END LOOP;
    UPDATE @schema@.registry SET revision = revision + 1 WHERE is_only_row;
END
$body$;

-- Takes everything in the schema from a role.
CREATE FUNCTION @schema@.revoke_mcp_access(p_role regrole) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $body$
BEGIN
    PERFORM FROM @schema@.registry FOR UPDATE;
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA @schema@ FROM %s', p_role);
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA @schema@ FROM %s', p_role);
    EXECUTE format('REVOKE ALL ON SCHEMA @schema@ FROM %s', p_role);
    UPDATE @schema@.registry SET revision = revision + 1 WHERE is_only_row;
END
$body$;
