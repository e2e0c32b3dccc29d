-- Who logs in, and whom calls run as. Roles belong to the cluster, which may have them already.
DO $roles$
DECLARE
    v_role text;
BEGIN
    FOREACH v_role IN ARRAY ARRAY['mcp_public', 'mcp_staff', 'mcp_auditor', 'mcp_stranger'] LOOP
        IF to_regrole(v_role) IS NULL THEN
            EXECUTE format('CREATE ROLE %I NOLOGIN', v_role);
        END IF;
    END LOOP;
    IF to_regrole('mcp_node') IS NULL THEN
        CREATE ROLE mcp_node LOGIN NOINHERIT PASSWORD 'mcp_node';
    END IF;
    GRANT mcp_public, mcp_staff, mcp_auditor TO mcp_node;
END
$roles$;
SELECT api.grant_mcp_access(role::regrole) FROM unnest(ARRAY['mcp_public', 'mcp_staff', 'mcp_auditor']) AS role;
