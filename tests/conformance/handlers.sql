-- What the official conformance suite looks for, by the suite's names and with the suite's texts, as handlers in SQL: the
-- twins of crates/tidegate/examples/conformance. What is missing here SQL cannot express; handlers-expected-failures.yaml
-- names it.
CREATE FUNCTION pg_temp.tool(p_name text, p_description text, p_body text, p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(
        jsonb_build_object('type', 'tool', 'name', p_name, 'description', p_description, 'requiresAuth', false) || p_more, p_body)
$$;
-- A tool that always answers with the same blocks.
CREATE FUNCTION pg_temp.answering(p_name text, p_description text, p_blocks jsonb, p_more jsonb DEFAULT '{}') RETURNS void LANGUAGE sql AS $$
    SELECT pg_temp.tool(p_name, p_description,
        format('BEGIN RETURN api.mcp_tool_result(%L::jsonb, (request).request_id); END', p_blocks), '{"readOnly": true}' || p_more)
$$;

-- The smallest files that are a picture and a sound.
CREATE TEMPORARY TABLE media AS SELECT
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC' AS pixel,
    'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==' AS silence;

-- ---- Tools ----
SELECT pg_temp.answering('test_simple_text', 'Answers with a text.',
    '[{"type": "text", "text": "This is a simple text response for testing."}]');
SELECT pg_temp.answering('test_image_content', 'Answers with a picture.',
    jsonb_build_array(jsonb_build_object('type', 'image', 'data', pixel, 'mimeType', 'image/png'))) FROM media;
SELECT pg_temp.answering('test_audio_content', 'Answers with a sound.',
    jsonb_build_array(jsonb_build_object('type', 'audio', 'data', silence, 'mimeType', 'audio/wav'))) FROM media;
SELECT pg_temp.answering('test_embedded_resource', 'Answers with an embedded resource.',
    '[{"type": "resource", "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}}]');
SELECT pg_temp.answering('test_multiple_content_types', 'Answers with a text, a picture and an embedded resource.', jsonb_build_array(
    jsonb_build_object('type', 'text', 'text', 'Multiple content types test:'),
    jsonb_build_object('type', 'image', 'data', pixel, 'mimeType', 'image/png'),
    '{"type": "resource", "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": "{\"test\":\"data\",\"value\":123}"}}'::jsonb)) FROM media;
SELECT pg_temp.tool('test_error_handling', 'Fails.',
    $$BEGIN RETURN api.mcp_tool_error('This tool intentionally returns an error for testing', (request).request_id); END$$);
-- The suite calls these two without asking for log messages or anything of the client, and none may come.
SELECT pg_temp.answering('test_logging_tool', 'Answers without a log message.', '[{"type": "text", "text": "It was not logged."}]');
SELECT pg_temp.answering('test_streaming_elicitation', 'Answers on a stream of its own.', '[{"type": "text", "text": "Nothing had to be asked."}]');
SELECT pg_temp.answering('json_schema_2020_12_tool', 'Takes arguments of a composed schema.', '[{"type": "text", "text": "The arguments were valid."}]', '{"inputSchema": {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"}
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": false}}');
SELECT pg_temp.tool('test_x_mcp_header', 'Takes a region that is mirrored in a header.', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(
        format('The region is %s.', coalesce((request).arguments ->> 'region', 'none')))), (request).request_id);
END
$body$, '{"readOnly": true, "inputSchema": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}, "additionalProperties": false}}');
-- A handler that registers another one: whoever listens hears that the lists have changed.
SELECT pg_temp.tool('test_trigger_tool_change', 'Changes the tools.', $body$
BEGIN
    PERFORM api.create_or_replace_mcp_handler(
        jsonb_build_object('type', 'tool', 'name', 'changed', 'requiresAuth', false, 'description', gen_random_uuid()),
        'BEGIN RETURN api.mcp_tool_result(''[]'', (request).request_id); END');
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('The tools change.')), (request).request_id);
END
$body$);
SELECT pg_temp.tool('test_trigger_prompt_change', 'Changes the prompts.', $body$
BEGIN
    PERFORM api.create_or_replace_mcp_handler(
        jsonb_build_object('type', 'prompt', 'name', 'changed', 'requiresAuth', false, 'description', gen_random_uuid()),
        'BEGIN RETURN api.mcp_prompt_result(''[]'', (request).request_id); END');
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text('The prompts change.')), (request).request_id);
END
$body$);
-- What takes its time becomes a task where the client can come back for it: the node makes it one, the handler only waits.
SELECT pg_temp.tool('greet', 'Greets at once.', $body$
BEGIN
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(format('Hello, %s!', (request).arguments ->> 'name'))), (request).request_id);
END
$body$, '{"readOnly": true, "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}');
SELECT pg_temp.tool('slow_compute', 'Takes as long as it is told to.', $body$
DECLARE
    v_seconds double precision := (request).arguments -> 'seconds';
BEGIN
    PERFORM pg_sleep(v_seconds);
    RETURN api.mcp_tool_result(jsonb_build_array(api.mcp_text(
        format('%s took %s s.', (request).arguments ->> 'label', v_seconds))), (request).request_id);
END
$body$, '{"readOnly": true, "inputSchema": {"type": "object", "required": ["seconds"], "properties": {
    "seconds": {"type": "number", "minimum": 0, "maximum": 3600}, "label": {"type": "string"}}}}');
SELECT pg_temp.tool('failing_job', 'Fails after a second.', $body$
BEGIN
    PERFORM pg_sleep(1);
    RETURN api.mcp_tool_error('This job intentionally fails.', (request).request_id);
END
$body$, '{"readOnly": true}');
SELECT pg_temp.tool('protocol_error_job', 'Breaks after a second.', $body$
BEGIN
    PERFORM pg_sleep(1);
    RAISE EXCEPTION 'this job breaks on purpose';
END
$body$, '{"readOnly": true}');

-- ---- Resources ----
CREATE FUNCTION pg_temp.resource(p_name text, p_description text, p_uri text, p_mime_type text, p_contents jsonb) RETURNS void LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(
        jsonb_build_object('type', 'resource', 'name', p_name, 'description', p_description, 'uriTemplate', p_uri,
            'mimeType', p_mime_type, 'requiresAuth', false, 'readOnly', true),
        format('BEGIN RETURN api.mcp_resource_result(jsonb_build_array(%L::jsonb), (request).request_id); END',
            jsonb_build_object('uri', p_uri, 'mimeType', p_mime_type) || p_contents))
$$;
SELECT pg_temp.resource('static-text', 'A fixed text.', 'test://static-text', 'text/plain',
    '{"text": "This is the content of the static text resource."}');
SELECT pg_temp.resource('watched-resource', 'A fixed text.', 'test://watched-resource', 'text/plain', '{"text": "Clients subscribe to this one."}');
SELECT pg_temp.resource('static-binary', 'A fixed picture.', 'test://static-binary', 'image/png', jsonb_build_object('blob', pixel)) FROM media;
SELECT api.create_or_replace_mcp_handler('{"type": "resource", "name": "data-by-id", "description": "The data of one id.",
    "uriTemplate": "test://template/{id}/data", "mimeType": "application/json", "requiresAuth": false, "readOnly": true}', $body$
DECLARE
    v_id text := (request).variables ->> 'id';
BEGIN
    RETURN api.mcp_resource_result(jsonb_build_array(jsonb_build_object('uri', (request).uri, 'mimeType', 'application/json',
        'text', jsonb_build_object('id', v_id, 'templateTest', true, 'data', 'Data for ID: ' || v_id)::text)), (request).request_id);
END
$body$);

-- ---- Prompts ----
-- A prompt: one message of the user for each piece of content, which an expression of SQL makes.
CREATE FUNCTION pg_temp.prompt(p_name text, p_description text, p_arguments jsonb, VARIADIC p_contents text[]) RETURNS void LANGUAGE sql AS $$
    SELECT api.create_or_replace_mcp_handler(
        jsonb_build_object('type', 'prompt', 'name', p_name, 'description', p_description, 'arguments', p_arguments,
            'requiresAuth', false, 'readOnly', true),
        format('BEGIN RETURN api.mcp_prompt_result(jsonb_build_array(%s), (request).request_id); END',
            (SELECT string_agg(format('jsonb_build_object(''role'', ''user'', ''content'', %s)', content), ', ') FROM unnest(p_contents) AS content)))
$$;
SELECT pg_temp.prompt('test_simple_prompt', 'A message without arguments.', '[]',
    $$api.mcp_text('This is a simple prompt for testing.')$$);
SELECT pg_temp.prompt('test_prompt_with_arguments', 'A message made of two arguments.',
    '[{"name": "arg1", "description": "First test argument", "required": true}, {"name": "arg2", "description": "Second test argument", "required": true}]',
    $$api.mcp_text(format('Prompt with arguments: arg1=''%s'', arg2=''%s''', (request).arguments ->> 'arg1', (request).arguments ->> 'arg2'))$$);
SELECT pg_temp.prompt('test_prompt_with_embedded_resource', 'A message about a resource.',
    '[{"name": "resourceUri", "description": "URI of the resource to embed", "required": true}]',
    $$jsonb_build_object('type', 'resource', 'resource', jsonb_build_object('uri', (request).arguments ->> 'resourceUri',
        'mimeType', 'text/plain', 'text', 'Embedded resource content for testing.'))$$,
    $$api.mcp_text('Please process the embedded resource above.')$$);
SELECT pg_temp.prompt('test_prompt_with_image', 'A message about a picture.', '[]',
    format($$jsonb_build_object('type', 'image', 'data', %L, 'mimeType', 'image/png')$$, pixel),
    $$api.mcp_text('Please analyze the image above.')$$) FROM media;
