-- Two tenants in one table under row-level security, without FORCE, and handlers that read and write it.
CREATE TABLE public.note (tenant text NOT NULL, owner text NOT NULL, text text NOT NULL);
INSERT INTO public.note SELECT 'north', 'nobody', 'n' || n FROM generate_series(1, 7) AS n;
INSERT INTO public.note SELECT 'south', 'nobody', 's' || n FROM generate_series(1, 11) AS n;
ALTER TABLE public.note ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON public.note USING (tenant = current_setting('auth.tenant_id', true))
    WITH CHECK (tenant = current_setting('auth.tenant_id', true) AND owner = current_setting('auth.user_id', true));
GRANT SELECT, INSERT ON public.note TO mcp_staff, mcp_public;

CREATE FUNCTION pg_temp.tool(p_name text, p_body text, p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(jsonb_build_object('type', 'tool', 'name', p_name, 'requiresAuth', false) || p_more, p_body)
$$;
-- What the caller is, and what it sees: by tenant, and how much of it is its own.
CREATE FUNCTION public.seen() RETURNS jsonb LANGUAGE sql STABLE SET search_path = public, pg_temp AS $$
    SELECT jsonb_build_object('user', coalesce(current_setting('auth.user_id', true), ''), 'tenant', coalesce(current_setting('auth.tenant_id', true), ''),
        'role', current_user, 'tenants', coalesce((SELECT jsonb_agg(DISTINCT tenant) FROM note), '[]'),
        'given', (SELECT count(*) FROM note WHERE owner = 'nobody'),
        'own', (SELECT count(*) FROM note WHERE owner = current_setting('auth.user_id', true)))
$$;
SELECT pg_temp.tool('see', 'BEGIN RETURN api.mcp_structured_result(seen(), (request).request_id); END', '{"readOnly": true}');
SELECT pg_temp.tool('see_rows', 'SELECT tenant, owner FROM note', '{"rows": true, "readOnly": true}');
SELECT pg_temp.tool('add', $body$
BEGIN
    INSERT INTO note VALUES (current_setting('auth.tenant_id'), current_setting('auth.user_id'), (request).arguments ->> 'text');
    RETURN api.mcp_structured_result(seen(), (request).request_id);
END
$body$, '{"inputSchema": {"properties": {"text": {"type": "string"}}, "required": ["text"]}}');
SELECT pg_temp.tool('trespass', $body$
BEGIN
    INSERT INTO note VALUES ((request).arguments ->> 'tenant', current_setting('auth.user_id'), 'CANARY');
    RETURN api.mcp_structured_result(seen(), (request).request_id);
END
$body$);
SELECT pg_temp.tool('add_and_fail', $body$
BEGIN
    INSERT INTO note VALUES (current_setting('auth.tenant_id'), current_setting('auth.user_id'), 'CANARY');
    RAISE EXCEPTION 'CANARY of %', current_setting('auth.tenant_id');
END
$body$);
SELECT pg_temp.tool('add_and_say_no', $body$
BEGIN
    INSERT INTO note VALUES (current_setting('auth.tenant_id'), current_setting('auth.user_id'), 'CANARY');
    RETURN api.mcp_tool_error('no, ' || current_setting('auth.user_id'), (request).request_id);
END
$body$);
-- Counts outside of any transaction how many of the next one have begun.
CREATE SEQUENCE public.asleep;
GRANT USAGE ON SEQUENCE public.asleep TO mcp_staff;
SELECT pg_temp.tool('add_and_sleep', $body$
BEGIN
    PERFORM nextval('asleep');
    INSERT INTO note VALUES (current_setting('auth.tenant_id'), current_setting('auth.user_id'), 'CANARY');
    PERFORM pg_sleep(600);
    RETURN api.mcp_structured_result(seen(), (request).request_id);
END
$body$);
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "seen", "uriTemplate": "notes:///seen/{by}", "requiresAuth": false, "readOnly": true}', $body$
BEGIN
    RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object('uri', (request).uri, 'text', (seen() || (request).variables)::text)), (request).request_id);
END
$body$);
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "seen", "requiresAuth": false, "readOnly": true}', $body$
BEGIN
    RETURN api.mcp_prompt_result(jsonb_build_array(jsonb_build_object('role', 'user', 'content', api.mcp_text(seen()::text))), (request).request_id);
END
$body$);
