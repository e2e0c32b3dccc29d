//! Whatever is read, nothing panics and no password is printed.

use proptest::prelude::*;
use tidegate_postgres::connect::{ConnectTarget, ConnectionStringError};

use super::environment_fixture::EnvironmentFixture;

/// Percent-encodes every character.
fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Quotes a value as in keyword strings.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn parse_target(text: &str) -> Result<ConnectTarget, ConnectionStringError> {
    EnvironmentFixture::new().with_environment(|connect_environment| ConnectTarget::parse(text, connect_environment))
}

/// Text similar to a connection string.
fn almost_connection_string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("postgres://".to_owned()),
        Just("host=".to_owned()),
        Just("password=".to_owned()),
        Just("sslmode=".to_owned()),
        "[@:/?&=,%'\\\\\\[\\] ]",
        "[a-z0-9]{1,4}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn arbitrary_text_does_not_panic(text in any::<String>()) {
        let _ = parse_target(&text);
        let _ = parse_target(&format!("postgres://{text}"));
    }

    #[test]
    fn almost_valid_strings_do_not_panic(text in almost_connection_string()) {
        let _ = parse_target(&text);
    }

    #[test]
    fn arbitrary_files_do_not_panic(content in any::<String>()) {
        let scene = EnvironmentFixture::new().with_file(".pgpass", &content).with_file(".pg_service.conf", &format!("[a]\n{content}"));
        scene.describe_settings("host=h");
        scene.describe_settings("service=a");
    }

    #[test]
    fn encoded_values_round_trip(user in "[^\0]{1,20}", database in "[^\0]{1,20}") {
        let in_uri = parse_target(&format!("postgres://{}@h/{}", encode(&user), encode(&database))).unwrap();
        prop_assert_eq!((in_uri.user(), in_uri.database()), (user.as_str(), database.as_str()));
        let in_pairs = parse_target(&format!("host=h user={} dbname={}", quote(&user), quote(&database))).unwrap();
        prop_assert_eq!((in_pairs.user(), in_pairs.database()), (user.as_str(), database.as_str()));
    }

    /// The password is a unique word, with unescaped special characters around it.
    #[test]
    fn errors_contain_no_part_of_a_password(before in "[@:/?&=,%' a]{0,4}", after in "[@:/?&=,%' a]{0,4}") {
        let word = "zyx987";
        let password = format!("{word}{before}{word}{after}{word}");
        for text in [
            format!("postgres://reader:{password}@h.example.com:5433/shop?sslmode=require"),
            format!("postgres://h.example.com/shop?password={password}&sslmode=require"),
            format!("host=h.example.com password={password} dbname=shop"),
            format!("password='{password}' host=h.example.com"),
        ] {
            let printed = match parse_target(&text) {
                Ok(target) => format!("{target:?} {}", target.describe()),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!printed.contains(word), "{} of {}", printed, text);
        }
    }
}

#[test]
fn password_debug_output_is_redacted() {
    let target = parse_target("host=h password=s3cret").unwrap();
    let printed = format!("{target:?} {}", target.describe());
    assert!(!printed.contains("s3cret"), "{printed}");
}
