-- Tests of the tool @name@:
--
--     tidegate pg test "$DSN" @test@
--
-- All of this is rolled back. A row that begins with "not ok", and a statement that fails, is a failure.

SELECT pg_temp.same(
    pg_temp.call('@name@', '{"message": "hello"}', '{"user_id": "ann"}') #> '{result,content,0,text}',
    '"ann says: hello"',
    'it says what it was given');

SELECT pg_temp.same(
    pg_temp.call('@name@', '{"message": " "}', '{"user_id": "ann"}') -> 'result',
    '{"content": [{"type": "text", "text": "message: is blank; say something"}], "isError": true}',
    'what it refuses, it explains');

SELECT pg_temp.same(
    pg_temp.call('@name@', '{"massage": "hello"}', '{"user_id": "ann"}') #> '{result,isError}',
    'true',
    'arguments that do not fit are refused before it runs');

SELECT pg_temp.same(
    pg_temp.call('@name@', '{"message": "hello"}') #> '{error,code}',
    '-32001',
    'nobody in particular is not let in');
