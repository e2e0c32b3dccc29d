-- Tests of the resource @name@:
--
--     tidegate pg test "$DSN" @test@
--
-- All of this is rolled back. A row that begins with "not ok", and a statement that fails, is a failure.

SELECT pg_temp.same(
    pg_temp.read_resource('app:///@name@/7', '{"user_id": "ann"}') #> '{result,contents}',
    '[{"uri": "app:///@name@/7", "mimeType": "application/json", "text": "{\"id\": 7}"}]',
    'it is read by its URI');

SELECT pg_temp.same(
    pg_temp.read_resource('app:///@name@/seven', '{"user_id": "ann"}') #> '{error,message}',
    '"id: must be a number"',
    'what it refuses, it explains');

SELECT pg_temp.same(
    pg_temp.read_resource('app:///@name@/7') #> '{error,code}',
    '-32001',
    'nobody in particular is not let in');
