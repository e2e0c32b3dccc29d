//! Row policies in a configuration: what is wrong with them, and what they do.

use super::super::Configured;

const SHOP: &str = "databases:\n  - name: shop\n    files: shop\n    policies:\n";
const ROLES: &str = "roles: [{name: auditor, toolsets: ['*'], databases: ['*']}]\n";

fn check(policies: &str) -> String {
    Configured::new(&format!("{SHOP}{policies}{ROLES}")).complaint(&["config", "check"])
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    insta::assert_snapshot!(check(
        "      - {table: orders, rows: 'lower(id) = 1'}\n      - {table: order, rows: 'TRUE', except_roles: [auditr]}\n      \
         - {table: orders, columns: {id: {}}}\n      - {table: orders}\n"
    ));
    insta::assert_snapshot!(check(
        "      - {table: order, rows: 'TRUE'}\n      - {table: orders, rows: 'tenant = 1', columns: {emial: hash}}\n"
    ));
    let configured = Configured::new(
        "databases:\n  - {name: pg, postgres: 'host=127.0.0.1 port=1', policies: [{table: t, rows: 'TRUE'}]}\n  - {name: shop, files: \
         shop}\n  - {name: all, federated: [shop], policies: [{table: t, rows: 'TRUE'}]}\n",
    );
    insta::assert_snapshot!(configured.complaint(&["config", "check"]));
}

#[test]
fn a_policy_holds_for_whoever_asks() {
    let shop = "databases:\n  - name: shop\n    files: shop\n    policies:\n      - table: orders\n        rows: customer = \
                :subject OR customer = 'Ann'\n        columns: {amount: null, customer: {keep_last: 2}}\n        \
                except_roles: [auditor]\n";
    let ask = |more: &str| {
        let configured = Configured::new(&format!("{shop}{ROLES}{more}"));
        let ran = configured.run(&["call", "query", "table=orders", "format=csv"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.stdout
    };
    assert_eq!(ask(""), "id,customer,amount\r\n1,*nn,\r\n3,*nn,\r\n");
    assert_eq!(ask("auth: {local: [auditor]}\n"), "id,customer,amount\r\n1,Ann,12.5\r\n2,Bob,7.0\r\n3,Ann,\r\n");
}
