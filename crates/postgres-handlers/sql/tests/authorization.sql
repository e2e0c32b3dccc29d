-- Who may see and call what.

SELECT pg_temp.tool('open',
    'BEGIN RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(
        ''user '' || coalesce(current_setting(''auth.user_id'', true), ''''))), (request).request_id); END');
SELECT pg_temp.tool('closed', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(current_setting('auth.user_id') || '@'
        || current_setting('auth.tenant_id'))), (request).request_id);
END
$body$, '{"requiresAuth": true}');

-- Nobody
SELECT pg_temp.same(pg_temp.call('closed', '{}', context) #> '{error,code}', '-32001',
    format('nobody: %s', coalesce(context::text, 'no context')))
FROM unnest(ARRAY[NULL, '{}', '{"user_id": null}', '{"user_id": ""}', '{"user_id": "  "}', '{"user_id": {"a": 1}}',
    '{"user_id": [1]}',
    '{"user_id": true}', '"alice"', '{"tenant_id": "t"}', '{"User_Id": "alice"}']::jsonb[]) AS context;
SELECT pg_temp.same(pg_temp.call('open') #> '{result,content,0,text}', '"user "', 'an open tool works for nobody');
SELECT pg_temp.same(pg_temp.call('open', '{}', '{"user_id": "alice"}') #> '{result,content,0,text}', '"user alice"',
    'and for somebody');
SELECT pg_temp.same(pg_temp.call('closed', '{}', '{"user_id": "alice",
    "tenant_id": "t1"}') #> '{result,content,0,text}', '"alice@t1"', 'a closed one for somebody');

-- No identity stays
SELECT pg_temp.same(pg_temp.call('closed') #> '{error,code}', '-32001', 'the next call is nobody''s again');
SELECT pg_temp.same(pg_temp.call('closed', '{}', '{"user_id": "bob"}') #> '{result,content,0,text}', '"bob@"',
    'nor does the tenant stay');
SELECT pg_temp.same(pg_temp.call('open') #> '{result,content,0,text}', '"user "', 'nor the user');
SELECT pg_temp.ok(NOT jsonb_path_exists(pg_temp.ask('tools/list'), '$.result.tools[*] ? (@.name == "closed")'),
    'a list hides what calls refuse');
SELECT pg_temp.ok(jsonb_path_exists(pg_temp.ask('tools/list', '{}', '{"user_id": "alice"}'),
    '$.result.tools[*] ? (@.name == "closed")'), 'and shows it to who may');
SELECT pg_temp.ok(NOT jsonb_path_exists(pg_temp.ask('tools/list'), '$.result.tools[*] ? (@.name == "closed")'),
    'the next list is nobody''s again');
SELECT pg_temp.same(jsonb_path_query_first(api.mcp_list_tools(), '$.tools[*] ? (@.name == "closed")._meta.requiresAuth'),
    'true', 'called directly, the list marks what requires an identity');
SELECT pg_temp.ok(NOT jsonb_path_exists(api.mcp_list_tools(), '$.tools[*] ? (@.name == "open")._meta.requiresAuth'),
    'and nothing else');
SELECT set_config('auth.user_id', 'left over', true);
SELECT pg_temp.ok(NOT jsonb_path_exists(api.mcp_list_tools(), '$.tools[*]._meta.requiresAuth'),
    'with an identity there is nothing to mark');
SELECT pg_temp.same(pg_temp.call('closed') #> '{error,code}', '-32001', 'a setting that was left over proves nothing');
SELECT pg_temp.ok(current_setting('auth.user_id') = 'left over', 'and is as it was afterwards');
SELECT set_config('auth.user_id', '', true);

-- A check of the owner's
CREATE FUNCTION pg_temp.is_employee(p_context jsonb) RETURNS boolean LANGUAGE sql STABLE AS
    $$SELECT p_context ->> 'user_id' = 'alice'$$;
SELECT api.set_mcp_identity_check('pg_temp.is_employee(jsonb)');
SELECT pg_temp.same(pg_temp.call('closed', '{}', '{"user_id": "alice"}') #> '{result,content,0,text}', '"alice@"',
    'whom the check knows');
SELECT pg_temp.same(pg_temp.call('closed', '{}', '{"user_id": "mallory"}') #> '{error,code}', '-32001',
    'and whom it does not');
CREATE FUNCTION pg_temp.fails(p_context jsonb) RETURNS boolean LANGUAGE plpgsql STABLE AS
    $$BEGIN RAISE EXCEPTION 'secret'; END$$;
SELECT api.set_mcp_identity_check('pg_temp.fails(jsonb)');
SELECT pg_temp.same(pg_temp.call('closed', '{}', '{"user_id": "alice"}') #> '{error,code}', '-32001',
    'a check that fails lets nobody in');
SELECT pg_temp.refused($$SELECT api.set_mcp_identity_check('pg_catalog.now()')$$, 'is no identity check',
    'not every function is a check');
SELECT api.set_mcp_identity_check(NULL);

-- The context that a handler reads
SELECT pg_temp.tool('context',
    'BEGIN RETURN api.mcp_structured_result(coalesce((request).context, ''{}''), (request).request_id); END');
SELECT pg_temp.same(pg_temp.call('context', '{}', '{"user_id": "u", "tenant_id": "t",
    "more": 1}') #> '{result,structuredContent}', '{"user_id": "u", "tenant_id": "t", "more": 1}', 'as it came');
SELECT pg_temp.same(pg_temp.call('context', '{}', '{"user_id": ["u"], "tenant_id": "t",
    "more": 1}') #> '{result,structuredContent}', '{"more": 1}', 'without a name that proves nothing');
SELECT api.drop_mcp_handler('context');

-- Roles
CREATE ROLE tidegate_test_caller;
CREATE ROLE tidegate_test_stranger;
CREATE ROLE tidegate_test_auditor;
SELECT api.grant_mcp_access('tidegate_test_caller');
SELECT api.grant_mcp_access('tidegate_test_auditor');
SELECT pg_temp.tool('audit', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END',
    '{"roles": ["tidegate_test_auditor"]}');
SELECT pg_temp.tool('later', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_stranger',
    $$SELECT api.mcp_handle_request('{"jsonrpc": "2.0", "id": 1, "method": "ping"}')$$), '^ERROR 42501',
    'a role without the grant cannot dispatch');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_stranger',
    $$SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "evil"}', 'BEGIN END')$$), '^ERROR 42501',
    'nor register');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_caller',
    $$SELECT api.create_or_replace_mcp_handler('{"type": "tool", "name": "evil"}', 'BEGIN END')$$), '^ERROR 42501',
    'one that may dispatch may not register');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_caller', $$SELECT api.drop_mcp_handler('open')$$),
    '^ERROR 42501', 'nor drop');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_caller',
    $$UPDATE api.handler SET requires_auth = false RETURNING 1$$), '^ERROR 42501', 'nor write the registry');
CREATE TEMPORARY TABLE call_as (role text, tool text, answer jsonb);
INSERT INTO call_as SELECT role, tool, pg_temp.as_role(role, format($$SELECT (api.mcp_handle_request(
    '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "%s"}}')).envelope$$, tool))::jsonb
FROM unnest(ARRAY['tidegate_test_caller', 'tidegate_test_auditor']) AS role,
    unnest(ARRAY['open', 'later', 'audit', 'audix']) AS tool;
SELECT pg_temp.ok((SELECT answer ? 'result' FROM call_as WHERE role LIKE '%caller' AND tool = 'open'),
    'a role that may dispatch calls a tool');
SELECT pg_temp.ok((SELECT answer ? 'result' FROM call_as WHERE role LIKE '%caller' AND tool = 'later'),
    'and one that came later');
SELECT pg_temp.ok((SELECT answer ? 'result' FROM call_as WHERE role LIKE '%auditor' AND tool = 'audit'),
    'a tool of certain roles, by one of them');
SELECT pg_temp.ok((SELECT replace(a.answer::text, 'audit', 'audix') = b.answer::text FROM call_as AS a, call_as AS b
    WHERE a.role LIKE '%caller' AND b.role = a.role AND a.tool = 'audit' AND b.tool = 'audix'),
        'to another it reads as one that never was');
SELECT pg_temp.same(jsonb_path_query_array(pg_temp.as_role('tidegate_test_caller',
    $$SELECT api.mcp_list_tools()$$)::jsonb, '$.tools[*].name'), '["closed", "later", "open"]', 'nor is it in its list');
SELECT pg_temp.tool('audit', 'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END', '{"roles": []}');
SELECT pg_temp.same(jsonb_path_query_array(pg_temp.as_role('tidegate_test_auditor',
    $$SELECT api.mcp_list_tools()$$)::jsonb, '$.tools[*].name'), '["closed", "later", "open"]',
    'registered anew without the role, it is taken away');
SELECT api.revoke_mcp_access('tidegate_test_auditor');
SELECT pg_temp.matches(pg_temp.as_role('tidegate_test_auditor', $$SELECT api.mcp_list_tools()$$), '^ERROR 42501',
    'revoked is revoked');
SELECT pg_temp.refused($$SELECT pg_temp.tool('audit', 'BEGIN END', '{"roles": ["tidegate_test_nobody"]}')$$,
    'roles: there is no role', 'a role that does not exist');

-- Row-level security binds without FORCE, since the handler runs as its caller.
CREATE TABLE public.tidegate_test_note (tenant text, note text);
INSERT INTO public.tidegate_test_note VALUES ('t1', 'one'), ('t2', 'two');
ALTER TABLE public.tidegate_test_note ENABLE ROW LEVEL SECURITY;
CREATE POLICY of_tenant ON public.tidegate_test_note USING (tenant = current_setting('auth.tenant_id', true));
GRANT SELECT, INSERT ON public.tidegate_test_note TO tidegate_test_caller;
SELECT pg_temp.tool('notes', $body$
BEGIN
    RETURN api.mcp_structured_result((SELECT jsonb_agg(note) FROM tidegate_test_note), (request).request_id);
END
$body$);
SELECT pg_temp.same((pg_temp.as_role('tidegate_test_caller',
    format($$SELECT (api.mcp_call_tool('notes', '{}', '{"user_id": "u", "tenant_id": "%s"}', 'i')).envelope$$,
    tenant))::jsonb)
    #> '{result,structuredContent}', wanted::jsonb, format('the notes of %s', tenant))
FROM (VALUES ('t1', '["one"]'), ('t2', '["two"]'), ('t3', 'null')) AS list (tenant, wanted);

-- Nothing is PUBLIC's
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) AS entry
    WHERE pronamespace = 'api'::regnamespace AND entry.grantee = 0), 'no function is PUBLIC''s');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'api'::regnamespace AND prosecdef),
    'no function runs with the rights of its owner');
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM pg_proc WHERE pronamespace = 'api'::regnamespace AND proconfig IS NULL
    AND prosqlbody IS NULL AND proname NOT IN ('mcp_tool_result', 'mcp_structured_result')),
    'every function has its search_path, or a body that was bound when it was made, but for two that say names in full');
CREATE SCHEMA tidegate_test_path;
CREATE DOMAIN tidegate_test_path.text AS pg_catalog.text CHECK (false);
CREATE DOMAIN tidegate_test_path.jsonb AS pg_catalog.jsonb CHECK (false);
SELECT set_config('search_path', 'tidegate_test_path, pg_catalog', true);
SELECT pg_temp.same((api.mcp_structured_result('1', '"i"'::pg_catalog.jsonb)).envelope #> '{result,content,0,text}', '"1"',
    'which no search_path leads astray');
SELECT pg_temp.same((api.mcp_tool_result('[]', '"i"'::pg_catalog.jsonb, '1')).envelope #> '{result,structuredContent}', '1',
    'neither of them');
SELECT set_config('search_path', '"$user", public', true);

-- A handler that leaves something behind
CREATE ROLE tidegate_test_other;
SELECT api.grant_mcp_access('tidegate_test_other');
GRANT tidegate_test_other TO tidegate_test_caller;
CREATE ROLE tidegate_test_session;
GRANT tidegate_test_caller, tidegate_test_other TO tidegate_test_session;
SELECT pg_temp.tool('becomes',
    $$BEGIN SET LOCAL ROLE tidegate_test_other; PERFORM set_config('auth.user_id', 'admin', true);
    RETURN api.mcp_tool_result('[]', (request).request_id); END$$);
SELECT pg_temp.same(pg_temp.as_role('tidegate_test_caller',
    $$SELECT to_jsonb(array_agg(step ORDER BY place)) FROM (VALUES
    (1, (api.mcp_call_tool('becomes', '{}', '{"user_id": "bob"}', 'i')).envelope ->> 'id'), (2, current_user),
        (3, current_setting('auth.user_id'))
    ) AS steps (place, step)$$)::jsonb, '["i", "tidegate_test_caller", ""]',
        'a role that a handler takes ends with it, so does a name');

-- A check that the caller cannot reach
CREATE SCHEMA tidegate_test_closed;
CREATE FUNCTION tidegate_test_closed.known(p_context jsonb) RETURNS boolean LANGUAGE sql AS 'SELECT true';
SELECT api.set_mcp_identity_check('tidegate_test_closed.known(jsonb)');
SELECT pg_temp.ok((pg_temp.as_role('tidegate_test_caller',
    $$SELECT (api.mcp_call_tool('open', '{}', '{"user_id": "alice"}', 'i')).envelope$$))::jsonb ? 'result',
    'a check in a schema that is closed to the caller knows nobody, and is no error');
SELECT api.set_mcp_identity_check(NULL);
SELECT pg_temp.same(pg_temp.call('closed', '{}', E'{"user_id": "\\t\\n"}') #> '{error,code}', '-32001',
    'blanks of any kind are nobody''s name');

-- Functions of others in the schema
CREATE FUNCTION api.tidegate_test_definer() RETURNS integer LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
REVOKE ALL ON FUNCTION api.tidegate_test_definer() FROM PUBLIC;
SELECT api.grant_mcp_access('tidegate_test_caller');
SELECT pg_temp.ok(NOT has_function_privilege('tidegate_test_caller', 'api.tidegate_test_definer()', 'EXECUTE'),
    'what runs with its owner''s rights is not ours to grant');
DROP FUNCTION api.tidegate_test_definer();
CREATE FUNCTION api.tidegate_test_helper() RETURNS integer LANGUAGE sql AS 'SELECT 1';
REVOKE ALL ON FUNCTION api.tidegate_test_helper() FROM PUBLIC;
GRANT CREATE ON SCHEMA api TO tidegate_test_other;
ALTER FUNCTION api.tidegate_test_helper() OWNER TO tidegate_test_other;
SELECT api.grant_mcp_access('tidegate_test_auditor');
SELECT pg_temp.ok(NOT has_function_privilege('tidegate_test_auditor', 'api.tidegate_test_helper()', 'EXECUTE'),
    'nor is what others own');
DROP FUNCTION api.tidegate_test_helper();
