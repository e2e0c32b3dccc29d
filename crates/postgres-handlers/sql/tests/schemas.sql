-- JSON Schema: of schemas, and of arguments before a handler runs.

-- Arguments
CREATE TABLE public.tidegate_test_ran (n integer);
SELECT pg_temp.tool('strict', 'BEGIN INSERT INTO tidegate_test_ran VALUES (1);
    RETURN api.mcp_tool_result(''[]'', (request).request_id); END', '{"inputSchema": {"type": "object",
    "properties": {"count": {"type": "integer", "minimum": 1}, "name": {"type": "string"}}, "required": ["count",
        "name"], "additionalProperties": false}}');
SELECT pg_temp.ok(pg_temp.call('strict', arguments)::text ~ 'must be an object|The arguments of strict are wrong',
    format('refused: %s', arguments))
FROM unnest(ARRAY['{}', '{"count": 1}', '{"count": "1", "name": "a"}', '{"count": null, "name": "a"}',
    '{"count": 1.5, "name": "a"}',
    '{"count": 0, "name": "a"}', '{"count": 1, "name": "a", "more": 1}', '[]', '[1]', '"text"', 'null',
        '5']::jsonb[]) AS arguments;
SELECT pg_temp.ok(NOT EXISTS (SELECT FROM public.tidegate_test_ran), 'before the handler ran');
SELECT pg_temp.same(pg_temp.call('strict', '{"count": "x", "more": 1}') -> 'result',
    jsonb_build_object('isError', true, 'content', jsonb_build_array(api.mcp_text(
    E'The arguments of strict are wrong:\n- name: is missing\n- more: is not among the known names (count, name)\n'
    '- count: must be integer, and is string'))), 'all that is wrong at once, for the model to mend');
SELECT pg_temp.same(pg_temp.call('strict', '{"count": 1, "name": "a"}') -> 'result', '{"content": []}',
    'right arguments');
SELECT pg_temp.ok(EXISTS (SELECT FROM public.tidegate_test_ran), 'then it runs');
SELECT pg_temp.ok(pg_temp.call('strict', '{"count": 3.0, "name": "a"}') #> '{result,isError}' IS NULL,
    '3.0 is a whole number');
SELECT api.create_or_replace_mcp_handler('{"type": "prompt", "name": "p", "requiresAuth": false,
    "arguments": [{"name": "a", "required": true}, {"name": "b"}]}',
    'BEGIN RETURN api.mcp_prompt_result(''[]'', (request).request_id); END');
SELECT pg_temp.same(pg_temp.ask('prompts/get',
    jsonb_build_object('name', 'p', 'arguments', arguments)) #> '{error,data,violations}', wanted,
    format('a prompt with %s', arguments))
FROM (VALUES
    ('{}'::jsonb, '["a: is missing"]'::jsonb),
    ('{"a": 1, "c": "x"}', '["a: must be a string, and is number",
        "c: is no argument of this prompt; arguments are a, b"]'),
    ('{"a": null}', '["a: must be a string, and is null"]'),
    ('{"a": "x"}', NULL)
) AS list (arguments, wanted);
SELECT pg_temp.same(pg_temp.ask('prompts/get', '{"name": "p", "arguments": ["x"]}') #> '{error,code}', '-32602',
    'an array for a prompt');

-- Values against schemas
SELECT pg_temp.ok((api.json_violations(schema, value) = '{}') = is_valid,
    format('%s is %s %s', value, CASE WHEN is_valid THEN 'a' ELSE 'no' END, schema))
FROM (VALUES
    ('{"type": "integer"}'::jsonb, '5'::jsonb, true), ('{"type": "integer"}', '5.5', false),
        ('{"type": ["string", "null"]}', 'null', true),
    ('{"type": "number"}', '5', true), ('{"type": "number"}', '"5"', false), ('{"type": "boolean"}', 'false', true),
        ('{"type": "null"}', 'null', true),
    ('{"enum": [1, "a", null]}', 'null', true), ('{"enum": [1, "a"]}', '"b"', false),
        ('{"const": {"a": 1}}', '{"a": 1.0}', true), ('{"const": 1}', '2', false),
    ('{"minimum": 1, "maximum": 3}', '3', true), ('{"minimum": 1, "maximum": 3}', '4', false),
        ('{"exclusiveMinimum": 1}', '1', false), ('{"exclusiveMaximum": 1}', '1', false),
    ('{"multipleOf": 0.1}', '0.3', true), ('{"multipleOf": 2}', '3', false),
    ('{"minLength": 2}', '"ä"', false), ('{"maxLength": 1}', '"ä"', true), ('{"pattern": "^a+$"}', '"aa"', true),
        ('{"pattern": "^a+$"}', '"b"', false), ('{"minLength": 2}', '5', true),
    ('{"items": {"type": "integer"}}', '[1, 2]', true), ('{"items": {"type": "integer"}}', '[1, "2"]', false),
        ('{"minItems": 1}', '[]', false), ('{"maxItems": 1}', '[1, 2]', false),
    ('{"uniqueItems": true}', '[1, 1.0]', false), ('{"uniqueItems": true}', '[1, "1"]', true),
        ('{"prefixItems": [{"type": "string"}], "items": false}', '["a"]', true),
    ('{"prefixItems": [{"type": "string"}], "items": false}', '["a", 1]', false),
        ('{"contains": {"const": 1}}', '[2, 1]', true), ('{"contains": {"const": 1}}', '[2]', false),
    ('{"contains": {"const": 1}, "maxContains": 1}', '[1, 1]', false),
    ('{"properties": {"a": {"properties": {"b": {"type": "string"}}}}}', '{"a": {"b": 1}}', false),
        ('{"patternProperties": {"^x": {"type": "integer"}}}', '{"xa": "1"}', false),
    ('{"patternProperties": {"^x": true}, "additionalProperties": false}', '{"xa": 1}', true),
        ('{"additionalProperties": {"type": "integer"}}', '{"a": "b"}', false),
    ('{"propertyNames": {"maxLength": 1}}', '{"ab": 1}', false), ('{"minProperties": 1}', '{}', false),
        ('{"maxProperties": 1}', '{"a": 1, "b": 2}', false),
    ('{"dependentRequired": {"a": ["b"]}}', '{"a": 1}', false),
        ('{"dependentRequired": {"a": ["b"]}}', '{"c": 1}', true),
        ('{"dependentSchemas": {"a": {"required": ["b"]}}}', '{"a": 1}', false),
    ('{"allOf": [{"minimum": 1}, {"maximum": 2}]}', '3', false),
        ('{"anyOf": [{"type": "string"}, {"minimum": 5}]}', '4', false),
        ('{"anyOf": [{"type": "string"}, {"minimum": 5}]}', '6', true),
    ('{"oneOf": [{"minimum": 1}, {"minimum": 2}]}', '3', false),
        ('{"oneOf": [{"minimum": 1}, {"minimum": 2}]}', '1', true), ('{"not": {"type": "string"}}', '"a"', false),
    ('{"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}', '"a"', false),
        ('{"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}', '1', false),
    ('{"if": {"type": "string"}, "then": {"minLength": 2}}', '1', true),
        ('{"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}', '1', false),
    ('{"$defs": {"tree": {"type": "object", "properties": {"kids": {"type": "array",
        "items": {"$ref": "#/$defs/tree"}}}}}, "$ref": "#/$defs/tree"}', '{"kids": [{"kids": [5]}]}', false),
    ('{"properties": {"a": false}}', '{"a": 1}', false), ('{"$ref": "#"}', '1', false),
        ('{"format": "email"}', '"no"', true)
) AS list (schema, value, is_valid);

-- Schemas
SELECT pg_temp.ok((api.json_schema_problems(schema, 's') = '{}') = is_valid,
    format('%s %s', CASE WHEN is_valid THEN 'a schema:' ELSE 'no schema:' END, left(schema::text, 80)))
FROM (VALUES
    ('{}'::jsonb, true), ('{"type": "object", "properties": {"a": true}}', true), ('true', false), ('5', false),
        ('null', false),
    ('{"type": "strin"}', false), ('{"type": []}', false), ('{"type": ["string", "nope"]}', false),
        ('{"type": ["string", "null"]}', true), ('{"type": 5}', false),
    ('{"required": "a"}', false), ('{"required": ["a", "a"]}', false), ('{"required": [1]}', false),
        ('{"required": []}', true), ('{"enum": []}', false), ('{"enum": {}}', false),
    ('{"properties": []}', false), ('{"properties": {"a": 1}}', false), ('{"items": [{}]}', false),
        ('{"anyOf": []}', false), ('{"anyOf": {}}', false), ('{"anyOf": [{"type": 1}]}', false),
    ('{"minimum": "1"}', false), ('{"multipleOf": 0}', false), ('{"minLength": -1}', false),
        ('{"minLength": 1.5}', false), ('{"minLength": 2.0}', true), ('{"pattern": "("}', false),
    ('{"pattern": 5}', false), ('{"patternProperties": {"(": {}}}', false), ('{"uniqueItems": "yes"}', false),
        ('{"additionalProperties": 5}', false), ('{"not": "x"}', false),
    ('{"if": {"type": "x"}}', false), ('{"$ref": "https://example.com/schema"}', false),
        ('{"$ref": "#/$defs/none"}', false), ('{"$ref": "#/$defs/a", "$defs": {"a": {}}}', true),
    ('{"$ref": "#/$defs/a~1b%20c", "$defs": {"a/b c": {}}}', true), ('{"$defs": {"a": {"type": "nope"}}}', false),
        ('{"dependentRequired": {"a": "b"}}', false), ('{"title": 5}', false),
    ('{"x-anything": [1], "default": null, "examples": 5}', true),
        ('{"enum": [{"type": "nope"}], "const": {"type": "nope"}}', true)
) AS list (schema, is_valid);
SELECT pg_temp.ok(api.json_schema_problems((SELECT (repeat('{"items": ', 70) || '{}' || repeat('}', 70))::jsonb),
    's')::text ~ 'deeper than 64', 'a schema that is too deep');
SELECT pg_temp.same(to_jsonb(api.json_schema_problems('{"type": "object", "properties": {"a": {"$ref": "#/type"}}}',
    's')), '["s.properties.a.$ref: there is no schema at \"#/type\""]', 'a reference to what is no schema');
SELECT pg_temp.ok(length(api.json_violations(jsonb_build_object('additionalProperties', false, 'properties',
    jsonb_object_agg('property_' || n, true)), '{"x": 1}')::text) < 1000,
    'of many names the first ones') FROM generate_series(1, 1000) AS n;
SELECT pg_temp.ok(api.json_violations('{"type": "integer", "minimum": 1, "multipleOf": 3}',
    (repeat('9', 1000))::jsonb) = '{}', 'a number of a thousand digits');
SELECT pg_temp.ok(pg_temp.call('strict', (repeat('[', 1000) || repeat(']', 1000))::jsonb) #> '{error,code}' = '-32602',
    'nesting without end');
SELECT pg_temp.ok(cardinality(api.json_schema_problems(jsonb_build_object('properties',
    jsonb_object_agg('property_' || n, '{"type": "nope"}'::jsonb)), 's')) = 20,
    'of many mistakes the first ones') FROM generate_series(1, 1000) AS n;
SELECT pg_temp.ok((api.json_schema_problems(schema, 's') = '{}') = is_valid,
    format('%s %s', CASE WHEN is_valid THEN 'a schema:' ELSE 'no schema:' END, schema))
FROM (VALUES
    ('{"$schema": "https://json-schema.org/draft/2020-12/schema"}'::jsonb, true),
        ('{"$schema": "http://json-schema.org/draft-07/schema#"}', true),
    ('{"$schema": "http://json-schema.org/draft-04/schema#"}', false), ('{"$schema": 5}', false),
        ('{"properties": {"a": {"x-mcp-header": "Region"}}}', true),
    ('{"properties": {"a": {"x-mcp-header": ""}}}', false), ('{"properties": {"a": {"x-mcp-header": "a b"}}}', false)
) AS list (schema, is_valid);
SELECT pg_temp.same(to_jsonb(api.json_schema_problems(jsonb_build_object('enum', jsonb_agg(n)), 's')),
    '["s: the schema has more than 10000 parts"]', 'too large a schema')
FROM generate_series(1, 10000) AS n;
SELECT pg_temp.refused($$SELECT api.json_violations('{"allOf": [{"$ref": "#"}, {"$ref": "#"}]}', '1', '', NULL, 0,
    clock_timestamp() + '50 ms')$$, 'takes longer', 'a schema that leads to itself has an end');
