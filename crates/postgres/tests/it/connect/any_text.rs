//! Whatever is read, nothing panics and no password is printed.

use proptest::prelude::*;
use tidegate_postgres::connect::{Password, Target, TargetError};

use super::scene::Scene;

/// Percent-encodes every character.
fn encode(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Quotes as keywords and values want it.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn read(text: &str) -> Result<Target, TargetError> {
    Scene::new().with_surroundings(|surroundings| Target::read(text, surroundings))
}

/// Text that looks like a connection string, more or less.
fn nearly_a_string() -> impl Strategy<Value = String> {
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
    fn any_text_is_read_or_refused(text in any::<String>()) {
        let _ = read(&text);
        let _ = read(&format!("postgres://{text}"));
    }

    #[test]
    fn almost_any_string_is_read_or_refused(text in nearly_a_string()) {
        let _ = read(&text);
    }

    #[test]
    fn any_password_file_and_service_file_is_read_or_refused(content in any::<String>()) {
        let scene = Scene::new().file(".pgpass", &content).file(".pg_service.conf", &format!("[a]\n{content}"));
        scene.understand("host=h");
        scene.understand("service=a");
    }

    #[test]
    fn what_is_encoded_is_understood_as_it_was(user in "[^\0]{1,20}", database in "[^\0]{1,20}") {
        let in_uri = read(&format!("postgres://{}@h/{}", encode(&user), encode(&database))).unwrap();
        prop_assert_eq!((in_uri.user(), in_uri.database()), (user.as_str(), database.as_str()));
        let in_pairs = read(&format!("host=h user={} dbname={}", quote(&user), quote(&database))).unwrap();
        prop_assert_eq!((in_pairs.user(), in_pairs.database()), (user.as_str(), database.as_str()));
    }

    /// The password is a word that stands nowhere else, with characters around it that somebody forgot to escape.
    #[test]
    fn no_piece_of_a_password_is_printed(before in "[@:/?&=,%' a]{0,4}", after in "[@:/?&=,%' a]{0,4}") {
        let word = "zyx987";
        let password = format!("{word}{before}{word}{after}{word}");
        for text in [
            format!("postgres://reader:{password}@h.example.com:5433/shop?sslmode=require"),
            format!("postgres://h.example.com/shop?password={password}&sslmode=require"),
            format!("host=h.example.com password={password} dbname=shop"),
            format!("password='{password}' host=h.example.com"),
        ] {
            let printed = match read(&text) {
                Ok(target) => format!("{target:?} {}", target.describe()),
                Err(error) => format!("{error} {error:?}"),
            };
            prop_assert!(!printed.contains(word), "{} of {}", printed, text);
        }
    }
}

#[test]
fn a_password_is_three_stars() {
    assert_eq!(format!("{:?}", Password::new("s3cret")), "***");
    let target = read("host=h password=s3cret").unwrap();
    let printed = format!("{target:?} {:?} {}", target.members(), target.describe());
    assert!(!printed.contains("s3cret"), "{printed}");
}
