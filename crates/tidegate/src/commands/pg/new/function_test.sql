-- Tests of the tool @name@:
--
--     tidegate pg test "$DSN" @test@
--
-- All of this is rolled back. A row that begins with "not ok", and a statement that fails, is a failure.

SELECT pg_temp.ok(
    jsonb_path_exists(pg_temp.ask('tools/list', '{}', '{"user_id": "ann"}'), '$.result.tools[*] ? (@.name == "@name@")'),
    'it is listed');

SELECT pg_temp.same(
    pg_temp.call('@name@', '{"no_such_argument": 1}', '{"user_id": "ann"}') #> '{result,isError}',
    'true',
    'arguments that it does not have are refused');

SELECT pg_temp.same(
    pg_temp.call('@name@') #> '{error,code}',
    '-32001',
    'nobody in particular is not let in');

-- With arguments of yours:
--
--     SELECT pg_temp.same(
--         pg_temp.call('@name@', '{"argument": 1}', '{"user_id": "ann"}') #> '{result,structuredContent}',
--         '{"result": 2}',
--         'it answers');
