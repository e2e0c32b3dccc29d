-- The name of the server, which its owner sets.

SELECT api.set_mcp_server('corner shop', '7.1');
SELECT pg_temp.same(api.mcp_server_info(), '{"name": "corner shop", "version": "7.1"}', 'the owner names the server');
SET mcp.server_name = 'my-server';
SELECT pg_temp.same(api.mcp_server_info(), '{"name": "my-server", "version": "7.1"}', 'a setting is ahead of it');
RESET mcp.server_name;
SELECT api.set_mcp_server(NULL);
SELECT pg_temp.same(api.mcp_server_info(), jsonb_build_object('name', current_database(), 'version', '1.0.0'),
    'NULL ends it');
SELECT pg_temp.refused('SELECT api.set_mcp_server('''')', 'must have 1 to 128 characters', 'no empty name');
SELECT pg_temp.refused('SELECT api.set_mcp_server(''a'', repeat(''1'', 129))', 'must have 1 to 128 characters',
    'no long version');
