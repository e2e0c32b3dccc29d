//! A configuration in several files.

use rmcp::ServiceExt as _;
use rmcp::transport::StreamableHttpClientTransport;

use super::ConfiguredFolder;
use super::rmcp_client::serve;
use super::server::wait_until;

const MAIN: &str = "include: conf.d/*.yaml\ndatabases: [{name: shop, files: shop}]\nbuilt_in: []\n";
const COUNT: &str = "tools: [{name: count, description: C, sql: SELECT count(*) AS n FROM orders}]\n";

struct IncludingFolder(ConfiguredFolder);

impl IncludingFolder {
    fn new(main: &str, files: &[(&str, &str)]) -> Self {
        let configured = Self(ConfiguredFolder::new(main));
        std::fs::create_dir(configured.0.folder().join("conf.d")).unwrap();
        files.iter().for_each(|(name, text)| configured.write(name, text));
        configured
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.folder().join("conf.d").join(name), text).unwrap();
    }

    fn check(&self) -> String {
        self.0.usage_error(&["config", "check"])
    }
}

#[test]
fn included_files_are_joined_in_their_order() {
    let files = [
        ("b.yaml", "tools: [{name: second, description: S, sql: SELECT 2 AS two}]\nlimits: {timeout: 5s}\n"),
        ("a.yaml", COUNT),
        ("c.yml", "not: read\n"),
        (".hidden.yaml", "not: read\n"),
    ];
    let folder = IncludingFolder::new(MAIN, &files);
    let checked = folder.0.run(&["config", "check"]);
    assert_eq!(checked.stdout, "tidegate.yaml: 1 databases and 2 tools, nothing wrong\n", "{checked:?}");
    assert_eq!(folder.0.run(&["call", "count"]).stdout.trim(), "[{\"n\":3}]");
    let tools = folder.0.run(&["tools"]).stdout;
    assert!(tools.find("count(") < tools.find("second("), "{tools}");
    let empty = IncludingFolder::new(MAIN, &[]).0.run(&["config", "check"]);
    assert_eq!(empty.code, Some(0), "nothing matches yet: {empty:?}");
}

#[test]
fn problems_name_the_file_and_duplicates_both() {
    let twice = [("a.yaml", COUNT), ("b.yaml", "\ntools:\n  - {name: count, description: D, sql: SELECT 1 AS one}\n")];
    insta::assert_snapshot!(IncludingFolder::new(MAIN, &twice).check(), @r"
    error: the configuration cannot be used
    conf.d/b.yaml:3:6: tools[1].name: count is the name of another; the other is in conf.d/a.yaml:1:10
    ");
    let databases = [("a.yaml", "databases: [{name: shop, files: shop}]\n")];
    insta::assert_snapshot!(IncludingFolder::new(MAIN, &databases).check(), @r"
    error: the configuration cannot be used
    conf.d/a.yaml:1:14: databases[1].name: shop is the name of another; the other is in tidegate.yaml:2:14
    ");
    let keys =
        [("a.yaml", "server: {listen: '127.0.0.1:1'}\n"), ("b.yaml", "server:\n  listen: 127.0.0.1:2\n  title: T\n")];
    insta::assert_snapshot!(IncludingFolder::new(MAIN, &keys).check(), @r"
    error: the configuration cannot be used
    conf.d/b.yaml:2:11: server.listen is set a second time; the first is in conf.d/a.yaml:1:18
    ");
    let wrong = [("a.yaml", "toolz: []\n"), ("b.yaml", "tools: [\n"), ("c.yaml", "include: d.yaml\n")];
    insta::assert_snapshot!(IncludingFolder::new(MAIN, &wrong).check(), @r"
    error: the configuration cannot be used
    conf.d/b.yaml:2:1: is no YAML: while parsing a node, did not find expected node content
    conf.d/c.yaml:1:1: include may stand in the main file only
    ");
    let unknown = IncludingFolder::new(MAIN, &[("a.yaml", "toolz: []\n")]).check();
    assert!(unknown.contains("conf.d/a.yaml:1:1: toolz: unknown key; did you mean tools?"), "{unknown}");
    let absent = IncludingFolder::new("include: [conf.d/a.yaml]\n", &[]).check();
    assert!(absent.contains("conf.d/a.yaml: cannot be read"), "{absent}");
    let folders = IncludingFolder::new("include: '*/a.yaml'\n", &[]).check();
    assert!(folders.contains("tidegate.yaml:1:10: has a wildcard in the name of a folder"), "{folders}");
}

#[tokio::test(flavor = "multi_thread")]
async fn included_files_are_watched() {
    let folder = IncludingFolder::new(MAIN, &[]);
    let server = serve(&folder.0);
    let client = ().serve(StreamableHttpClientTransport::from_uri(server.url.as_str())).await.unwrap();
    let wait_for = async |expected: &[&str]| {
        wait_until(async || {
            let tools = client.list_all_tools().await.unwrap();
            tools.iter().map(|tool| tool.name.as_ref()).eq(expected.iter().copied())
        })
        .await;
    };
    wait_for(&[]).await;
    folder.write("a.yaml", COUNT);
    wait_for(&["count"]).await;
    folder.write("a.yaml", &COUNT.replace("count,", "counted,"));
    wait_for(&["counted"]).await;
    std::fs::remove_file(folder.0.folder().join("conf.d/a.yaml")).unwrap();
    wait_for(&[]).await;
    client.cancel().await.unwrap();
}
