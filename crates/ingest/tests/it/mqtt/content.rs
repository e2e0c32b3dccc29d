//! What becomes of the content of messages.

use std::sync::Arc;

use arrow::datatypes::DataType;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tidegate_ingest::SchemaEvolution;
use tidegate_ingest::mqtt::{MqttReceiver, TopicColumn};
use tidegate_ingest_formats::BodyFormat;

use super::broker::Broker;
use super::fixture::{
    connected, numbered, open_folder, options, publish, rows, texts, until, until_distinct, within_time,
};

fn message(topic: &str, payload: impl Into<Vec<u8>>) -> (String, Vec<u8>) {
    (topic.to_owned(), payload.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_do_not_fit_are_rejected_with_their_topic() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let receiver = connected(options(broker.port), &folder).await;
        let messages = vec![
            message("plant/a/data", r#"{"n": 1, "note": "good"}"#),
            message("plant/b/data", r#"{"n": "#),
            message("plant/c/data", r#"{"n": 1.5}"#),
            message("plant/d/data", r#"[{"n": 2}, {"n": "x"}, {"n": 3}]"#),
            message("plant/e/data", ""),
            message("plant/f/data", [0xff, 0x00]),
            message("plant/g/data", r#"{"n": 4, "site": "own"}"#),
            message("plant/h/data", vec![b' '; 17 << 20]),
            message("plant/i/data", r#"{"n": 5}"#),
        ];
        publish(broker.port, messages).await;
        let found = until_distinct(&folder, 4).await;
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1), (3, 1), (5, 1)]);
        until(&receiver, |numbers| numbers.stored == 4 && numbers.rejected == 7).await;
        let stored = texts(&rows(&folder, "sensors"), "site");
        assert_eq!(stored, ["a", "d", "d", "i"].map(|site| Some(site.to_owned())));
        let rejected = rows(&folder, "sensors__rejects");
        let mut reasons: Vec<String> = texts(&rejected, "reason").into_iter().map(Option::unwrap).collect();
        reasons.sort();
        assert_eq!(reasons.len(), 7);
        for (reason, site) in reasons.iter().zip(["b", "c", "d", "e", "f", "g", "h"]) {
            assert!(reason.starts_with(&format!("topic plant/{site}/data: ")), "{reason}");
        }
        assert!(texts(&rejected, "subject").iter().all(|subject| subject.as_deref() == Some("mqtt:tidegate-test")));
        receiver.stop().await;
        // All of them were acknowledged, so that none arrives again.
        let receiver = connected(options(broker.port), &folder).await;
        publish(broker.port, numbered(6..7)).await;
        until(&receiver, |numbers| numbers.stored == 1).await;
        assert_eq!(receiver.counters().numbers().received, 1);
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_are_inferred_and_added() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |options| {
            let sensors = options.tables.get_mut("sensors").unwrap();
            sensors.evolve = SchemaEvolution::AddColumns;
        })
        .await;
        let mut own = options(broker.port);
        own.topic_columns.push(TopicColumn { column: "topic".to_owned(), level: None });
        let receiver = connected(own, &folder).await;
        let messages = vec![
            message("plant/a/data", r#"{"n": 1}"#),
            message("plant/b/data", r#"{"n": 2, "heat": 2.5}"#),
            message("plant/c/data", r#"{"n": 3, "on": true}"#),
        ];
        publish(broker.port, messages).await;
        until_distinct(&folder, 3).await;
        let stored = rows(&folder, "sensors");
        let columns: Vec<String> = stored.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(columns, ["site", "n", "note", "topic", "heat", "on"]);
        assert_eq!(texts(&stored, "topic")[2].as_deref(), Some("plant/c/data"));
        receiver.stop().await;

        let mut own = options(broker.port);
        own.table = "fresh".to_owned();
        own.topics = vec!["fresh/+".to_owned()];
        own.client_id = "fresh".to_owned();
        let receiver = connected(own, &folder).await;
        publish(broker.port, vec![message("fresh/a", r#"[{"t": 1}, {"t": 1.5}]"#), message("fresh/b", r#"{"t": 2}"#)])
            .await;
        until(&receiver, |numbers| numbers.stored == 3).await;
        let stored = rows(&folder, "fresh");
        assert_eq!(stored.schema().field_with_name("t").unwrap().data_type(), &DataType::Float64);
        assert_eq!(texts(&stored, "site"), ["a", "a", "b"].map(|site| Some(site.to_owned())));
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_has_a_head_in_each_message() {
    let Some(mut broker) = Broker::installed() else { return };
    broker.start();
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let mut own = options(broker.port);
        own.format = BodyFormat::Csv;
        let receiver = connected(own, &folder).await;
        let messages = vec![
            message("plant/a/data", "n,note\n1,x\n2,y\n"),
            message("plant/b/data", "note,n\nz,3\n"),
            message("plant/c/data", "other\n1\n"),
        ];
        publish(broker.port, messages).await;
        until_distinct(&folder, 3).await;
        until(&receiver, |numbers| numbers.rejected == 1).await;
        receiver.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_arrive_over_tls_from_a_broker_that_is_trusted() {
    let Some(mut broker) = Broker::installed() else { return };
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let file = |name: &str| broker.folder().join(name);
    let (authority_file, certificate_file, key_file) = (file("ca.pem"), file("cert.pem"), file("key.pem"));
    std::fs::write(&authority_file, authority_pem).unwrap();
    std::fs::write(&certificate_file, certificate.pem()).unwrap();
    std::fs::write(&key_file, key.serialize_pem()).unwrap();
    let tls_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    broker.start_with(&format!(
        "listener {tls_port} 127.0.0.1\ncertfile {}\nkeyfile {}",
        certificate_file.display(),
        key_file.display()
    ));
    within_time(async {
        let path = tempfile::tempdir().unwrap();
        let folder = open_folder(path.path(), |_| {}).await;
        let mut own = options(tls_port);
        own.broker = format!("mqtts://localhost:{tls_port}").parse().unwrap();
        let distrusting = MqttReceiver::start(own.clone(), Arc::clone(&folder) as _, Arc::default());
        own.client_id = "trusting".to_owned();
        own.authorities = Some(authority_file);
        let receiver = connected(own, &folder).await;
        publish(broker.port, numbered(0..100)).await;
        until_distinct(&folder, 100).await;
        assert_eq!(distrusting.counters().numbers().received, 0);
        distrusting.stop().await;
        receiver.stop().await;
    })
    .await;
}
