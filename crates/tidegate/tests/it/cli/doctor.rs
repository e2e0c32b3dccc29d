//! `tidegate doctor`: what works, and what to mend.

use super::Configured;

#[test]
fn a_sound_set_up_is_well() {
    let configured = Configured::new("server: {listen: '127.0.0.1:0'}\ndatabases: [{name: shop, files: shop}]\n");
    let ran = configured.run(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let folder = configured.folder().canonicalize().unwrap();
    insta::assert_snapshot!(ran.stdout.replace(&folder.display().to_string(), "FOLDER"), @r"
    ok     configuration FOLDER/tidegate.yaml: 0 tools of your own
    ok     database shop: 2 tables
    ok     callers over HTTP need no key; therefore only this machine is listened to
    ok     10 tools, and a call was answered
    ok     127.0.0.1:0 is free to listen on
    ");
}

#[test]
fn what_is_wrong_is_said_with_what_mends_it() {
    let configured = Configured::new(
        "server: {listen: '127.0.0.1:0'}\ndatabases: [{name: shop, files: shop}]\nroles: [{name: a}]\nauth: {keys: keys.json, local: [a]}\n",
    );
    std::fs::write(configured.folder().join("shop/broken.parquet"), "no parquet").unwrap();
    let ran = configured.run(&["doctor"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let folder = configured.folder().canonicalize().unwrap();
    insta::assert_snapshot!(ran.stdout.replace(&folder.display().to_string(), "FOLDER"), @r"
    ok     configuration FOLDER/tidegate.yaml: 0 tools of your own
    ok     database shop: 3 tables
    WRONG  table shop.broken cannot be read: it is no readable Parquet file: Invalid Parquet file. Corrupt footer
    WRONG  nobody has a key yet: tidegate key add NAME --role ROLE
    WRONG  the user of this process reaches no tool; look at auth.local and its roles
    ok     127.0.0.1:0 is free to listen on
    ");
}
