//! Servers of other programs.

use arrow::array::AsArray;
use arrow::datatypes::{Int64Type, Schema};
use arrow::ipc::writer::IpcWriteOptions;
use arrow_flight::{FlightData, SchemaAsIpc};
use arrow_ipc::convert::IpcSchemaEncoder;
use arrow_ipc::{
    Endianness, FieldBuilder, IntBuilder, MessageBuilder, MessageHeader, MetadataVersion, SchemaBuilder, Type,
};
use tidegate_core::{ErrorKind, Principal};
use tidegate_network::FlightSqlOptions;
use tidegate_query::{Database, NodeDatabase};
use tidegate_sql::{Parameter, SqlDialect};
use tidegate_testkit::wait::wait_until;

use crate::node::{client, client_with, collect, numbers, run, run_with, statement};
use crate::other_program::{Damage, OtherProgram};
use crate::tables::schema_of;

#[tokio::test]
async fn the_parts_of_an_answer_are_read_in_order() {
    let program = OtherProgram {
        locations: vec![None, Some("arrow-flight-reuse-connection://?"), None],
        ..OtherProgram::default()
    };
    let client = client(&[program.start().await]);
    assert_eq!(numbers(&client, "SELECT n FROM numbers").await.unwrap(), [0, 1, 2]);
    assert_eq!(program.received(), ["SELECT n FROM numbers"]);
}

#[tokio::test]
async fn parts_at_other_servers_are_refused() {
    let program = OtherProgram { locations: vec![None, Some("grpc://elsewhere:1")], ..OtherProgram::default() };
    let error = run(&client(&[program.start().await]), "SELECT 1").await.err().unwrap();
    assert_eq!(error.message(), "node \"oslo\" refers to another server for its rows: \"grpc://elsewhere:1\"");
}

#[tokio::test]
async fn an_answer_without_parts_has_its_columns() {
    let program = OtherProgram { locations: Vec::new(), ..OtherProgram::default() };
    let rows = run(&client(&[program.start().await]), "SELECT 1").await.unwrap();
    assert_eq!(rows.schema.fields(), schema_of("numbers").fields());
    assert_eq!(collect(rows).await.unwrap().num_rows(), 0);
}

/// Not every server reports how it reads quotation marks, so it is tried.
#[tokio::test]
async fn quotation_marks_are_those_of_the_server() {
    for reports_quote in [true, false] {
        let program =
            OtherProgram { identifier_quote: "`", odd_text: r"abc", reports_quote, ..OtherProgram::default() };
        let client = client(&[program.start().await]);
        run(&client, "SELECT \"n\" AS \"a`b\" FROM numbers WHERE t = 'x'").await.unwrap();
        assert_eq!(program.received(), ["SELECT `n` AS `a``b` FROM numbers WHERE t = 'x'"]);
        for sql in ["SELECT 'it''s'", r"SELECT 'a\b'"] {
            let error = run(&client, sql).await.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::InvalidArguments, "{sql}: {error}");
        }
        assert_eq!(program.received().len(), 1);
    }
    let program = OtherProgram { identifier_quote: "`", ..OtherProgram::default() };
    run(&client(&[program.start().await]), "SELECT 'it''s' AS \"n\"").await.unwrap();
    assert_eq!(program.received(), ["SELECT 'it''s' AS `n`"]);
    let program = OtherProgram { odd_text: r"a'bc", ..OtherProgram::default() };
    let client = client(&[program.start().await]);
    run(&client, "SELECT 'a' AS \"n\"").await.unwrap();
    assert_eq!(program.received(), ["SELECT 'a' AS \"n\""]);
    assert!(run(&client, r"SELECT 'a\b'").await.is_err());
}

#[tokio::test]
async fn servers_with_unknown_quotation_marks_are_refused() {
    let program = OtherProgram { identifier_quote: "[", ..OtherProgram::default() };
    let error = run(&client(&[program.start().await]), "SELECT 1").await.err().unwrap();
    assert!(error.to_string().contains("quotes identifiers neither with \" nor with backquotes"), "{error}");
    assert!(program.received().is_empty());
}

#[tokio::test]
async fn values_are_bound_by_prepared_statements() {
    let program = OtherProgram::default();
    let database = client(&[program.start().await]);
    let values = vec![Parameter::Integer(7), Parameter::Text("it's".to_owned()), Parameter::Null];
    let rows = run_with(&database, "SELECT $1, $2, $3", values).await.unwrap();
    assert_eq!(collect(rows).await.unwrap().num_rows(), 1);
    wait_until("the end of the statement", || async { program.received().len() == 3 }).await;
    assert_eq!(program.received(), ["SELECT $1, $2, $3", "7|it's|", "closed bound"]);

    let without = OtherProgram { has_prepared_statements: false, ..OtherProgram::default() };
    let client = client(&[without.start().await]);
    let values = vec![Parameter::Integer(7), Parameter::Text("it's".to_owned())];
    run_with(&client, "SELECT $1, $2", values).await.unwrap();
    assert_eq!(without.received(), ["SELECT 7, 'it''s'"]);
}

#[tokio::test]
async fn errors_of_statements_keep_their_text() {
    let error = run(&client(&[OtherProgram::default().start().await]), "SELECT wrong").await.err().unwrap();
    assert_eq!((error.kind(), error.message()), (ErrorKind::InvalidArguments, "node \"oslo\": no such column: wrong"));
}

#[tokio::test]
async fn tables_have_the_names_that_statements_use() {
    let program = OtherProgram::default();
    let principal = Principal::process_user();
    let listed = client(&[program.start().await]).tables(&principal).await.unwrap();
    // A name that two schemas have is ambiguous.
    let names: Vec<&str> = listed.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["numbers", "typed"]);
    assert_eq!(listed.tables[1].schema.fields(), schema_of("typed").fields());
    let options = FlightSqlOptions::new(vec![program.start().await]);
    let listed = client_with(FlightSqlOptions { dialect: SqlDialect::Postgres, ..options }).tables(&principal).await;
    let listed = listed.unwrap();
    let names: Vec<&str> = listed.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["archive.twice", "archive.typed", "numbers", "twice"]);
}

/// Sail and others have no command for it.
#[tokio::test]
async fn tables_are_listed_by_a_statement_without_a_command_for_it() {
    for columns in [["database", "tableName"], ["table_schema", "table_name"]] {
        let program = OtherProgram { shows_tables: Some(columns), ..OtherProgram::default() };
        let tables = client(&[program.start().await]).tables(&Principal::process_user()).await.unwrap();
        let [numbers, wrong] = &tables.tables[..] else { panic!("{tables:?}") };
        assert_eq!((numbers.name.as_str(), &numbers.unreadable), ("numbers", &None));
        assert_eq!(numbers.schema.fields(), schema_of("numbers").fields());
        assert!(wrong.unreadable.as_ref().is_some_and(|reason| reason.contains("no such column")), "{wrong:?}");
        assert!(program.received().contains(&r#"SELECT * FROM "the ""wrong""" LIMIT 0"#.to_owned()));
    }
    let program = OtherProgram { shows_tables: Some(["a", "b"]), ..OtherProgram::default() };
    let error = client(&[program.start().await]).tables(&Principal::process_user()).await.unwrap_err();
    assert!(error.message().contains("SHOW TABLES has no names of tables"), "{error}");
}

#[tokio::test]
async fn plans_and_checks() {
    let client = client(&[OtherProgram::default().start().await]);
    let principal = Principal::process_user();
    let plan = client.plan(&statement(&client, "SELECT n FROM numbers"), &principal).await.unwrap();
    assert_eq!(plan.schema().fields(), schema_of("numbers").fields());
    let check = client.check(&principal).await.unwrap();
    assert_eq!((check.version.as_str(), check.subject.as_str()), ("Other 9", ""));
    assert_eq!(client.observed().version.as_deref(), Some("Other 9"));
    let running = crate::node::TestJob::start().await;
    let batch = collect(plan.run(&running.job).await.unwrap()).await.unwrap();
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(0), 0);
}

/// A node of a network that answers in part marks its answer.
#[tokio::test]
async fn the_mark_of_a_partial_answer_is_read() {
    let missing = r#"[{"name":"rome","reason":"is away","rows":7}]"#;
    for (mark, expected) in [(missing, ("rome", "is away")), ("?", ("unknown", "cannot be read"))] {
        let metadata = vec![("tidegate.missing_nodes", mark), ("tidegate.rows_on_all_nodes", "9"), ("other", "x")];
        let program = OtherProgram { metadata, ..OtherProgram::default() };
        let rows = run(&client(&[program.start().await]), "SELECT 1").await.unwrap();
        let missing = rows.missing.clone().unwrap();
        assert_eq!(
            (missing.nodes[0].name.as_str(), missing.nodes[0].rows, missing.rows_total),
            (expected.0, None, None)
        );
        assert!(missing.nodes[0].reason.contains(expected.1), "{missing:?}");
        let keys: Vec<&String> = rows.schema.metadata().keys().collect();
        assert_eq!(keys, ["other"]);
        let schema = rows.schema.clone();
        assert_eq!(collect(rows).await.unwrap().schema(), schema);
    }
}

/// Nothing is sent to a node whose answers could be misread.
#[tokio::test]
async fn a_node_with_another_version_of_the_protocol_is_refused() {
    let check = |protocol| match protocol {
        1 => {
            r#"{"version": "9.0.0", "protocol": 1, "time_ms": 0, "running_calls": 0, "subject": "ann", "dialect": "datafusion"}"#
        }
        _ => {
            r#"{"version": "9.0.0", "protocol": 2, "time_ms": 0, "running_calls": 0, "subject": "ann", "dialect": "datafusion"}"#
        }
    };
    let program = OtherProgram { node_check: Some(check(2)), ..OtherProgram::default() };
    let oslo = client(&[program.start().await]);
    let error = run(&oslo, "SELECT 1").await.err().unwrap();
    let expected = "node \"oslo\" is not available: its version is 9.0.0, with version 2 of the protocol between nodes; this server \
                    has version 1 of it";
    assert_eq!(error.message(), expected);
    let listed = NodeDatabase::tables(&oslo, &Principal::process_user()).await;
    assert_eq!(listed.unwrap_err().message(), expected);
    let checked = NodeDatabase::check(&oslo, &Principal::process_user()).await;
    assert_eq!(checked.unwrap_err().message(), expected);
    assert_eq!(program.received(), [""; 0]);
    // Of another version of the program, but of the same protocol.
    let program = OtherProgram { node_check: Some(check(1)), ..OtherProgram::default() };
    let checked = NodeDatabase::check(&client(&[program.start().await]), &Principal::process_user()).await;
    assert_eq!(checked.unwrap().subject, "ann");
}

/// The description of the only column `n` of an answer, from a big-endian machine.
fn big_endian_schema() -> Vec<u8> {
    // A builder without contents; the library writes the byte order of this machine.
    let mut builder = IpcSchemaEncoder::new().schema_to_fb(&Schema::empty());
    builder.reset();
    let name = builder.create_string("n");
    let mut integer = IntBuilder::new(&mut builder);
    integer.add_bitWidth(64);
    integer.add_is_signed(true);
    let integer = integer.finish();
    let mut field = FieldBuilder::new(&mut builder);
    field.add_name(name);
    field.add_type_type(Type::Int);
    field.add_type_(integer.as_union_value());
    let field = field.finish();
    let fields = builder.create_vector(&[field]);
    let mut schema = SchemaBuilder::new(&mut builder);
    schema.add_endianness(Endianness::Big);
    schema.add_fields(fields);
    let schema = schema.finish();
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(MessageHeader::Schema);
    message.add_header(schema.as_union_value());
    let message = message.finish();
    builder.finish(message, None);
    builder.finished_data().to_vec()
}

#[tokio::test]
async fn malformed_answers_are_errors() {
    let cases: [(&str, Damage); 7] = [
        ("no columns", |index, message| (index > 0).then_some(message)),
        ("no messages", |_, _| None),
        ("a cut body", |index, mut message| {
            if index == 1 {
                message.data_body.truncate(8);
            }
            Some(message)
        }),
        ("a cut description", |index, mut message| {
            if index == 1 {
                message.data_header.truncate(20);
            }
            Some(message)
        }),
        ("no bytes", |_, _| Some(FlightData::default())),
        ("columns again", |_, mut message| {
            let other = SchemaAsIpc::new(&schema_of("typed"), &IpcWriteOptions::default()).into();
            message = if message.data_body.is_empty() { message } else { other };
            Some(message)
        }),
        ("the byte order of other machines", |index, mut message| {
            if index == 0 {
                message.data_header = big_endian_schema().into();
            }
            Some(message)
        }),
    ];
    for (case, damage) in cases {
        let program = OtherProgram { damage, ..OtherProgram::default() };
        let error = match run(&client(&[program.start().await]), "SELECT 1").await {
            Ok(rows) => collect(rows).await.expect_err(case),
            Err(error) => error,
        };
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{case}: {error:?}");
        assert!(error.message().contains("its answer is malformed"), "{case}: {error}");
    }
}
