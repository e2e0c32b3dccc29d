//! Functions of a node of a network: `list_functions` and `execute_function` with `node`.

use serde_json::json;

use super::site_network::{ISSUER, KeyPair, NodeData, SiteNode, UnitingServer};

/// A node that serves its system tables.
const SYSTEM: NodeData = NodeData { database: "system: {tables: [memory, mounts]}", roles: &[("reader", "")] };

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_a_node_are_called_through_its_network() {
    let key = KeyPair::generate();
    let oslo = SiteNode::start_with("oslo", &key.public, SYSTEM);
    let configuration = format!(
        "server: {{listen: '127.0.0.1:0'}}\n\
         databases:\n  - {{name: sites, network: {{nodes: [{{name: oslo, url: '{}', database: plant}}], timeout: 60s, \
         trust: {{issuer: '{ISSUER}', key: '${{file:uniting-key.pem}}'}}}}}}\n  \
         - {{name: system, system: {{tables: [load]}}}}\n\
         roles:\n  - {{name: reader, toolsets: ['*'], databases: [sites, system]}}\n  \
         - {{name: local, toolsets: ['*'], databases: [system]}}\n\
         auth: {{keys: keys.json}}\n",
        oslo.flight
    );
    let callers = [("ann", "reader", Some("north")), ("joe", "local", Some("north"))];
    let server = UnitingServer::start_with(&key, &configuration, &callers);

    let listed = server.call("ann", "list_functions", json!({"node": "oslo"})).await;
    assert!(listed.text.contains("memory") && listed.text.contains("mounts"), "{listed:?}");
    assert!(!listed.text.contains("\"load\""), "{listed:?}");
    let memory = server.call("ann", "execute_function", json!({"node": "oslo", "function": "memory"})).await;
    assert_eq!(memory.json().as_array().unwrap().len(), 1, "{memory:?}");
    let local = server.call("ann", "execute_function", json!({"function": "load"})).await;
    assert_eq!(local.json().as_array().unwrap().len(), 1, "{local:?}");

    let absent = server.call("ann", "execute_function", json!({"node": "oslo", "function": "load"})).await;
    assert!(absent.is_error && absent.text.contains("there is no function \"load\""), "{absent:?}");
    // A caller without the network learns nothing of its nodes.
    let hidden = server.call("joe", "list_functions", json!({"node": "oslo"})).await;
    let unknown = server.call("joe", "list_functions", json!({"node": "bergen"})).await;
    assert_eq!(hidden.text.replace("oslo", "bergen"), unknown.text);
}
