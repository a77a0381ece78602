//! Which servers there are: `rpc discover`.

use serde_json::json;

use super::once::silent;
use super::support::{Serving, private_home, ran, run};

#[test]
fn servers_are_found_on_many_ports() {
    let (first, open) = (Serving::start(&[]), Serving::start(&["--no-auth"]));
    let (_silent, nobody) = silent();
    first.rpc(&["create", "scout"]);
    let ports = format!("{},{},{nobody}", first.port, open.port);
    let found = run(first.home.path(), &["rpc", "discover", "--ports", &ports, "--json"]);
    let port = |server: &Serving| server.port.parse::<u16>().unwrap();
    let mut expected = [
        json!({"port": port(&first), "detection": "nexus_server", "auth": "accepted",
            "token_present": true, "agents": 1}),
        json!({"port": port(&open), "detection": "nexus_server", "auth": "accepted",
            "token_present": false, "agents": 0}),
    ];
    expected.sort_by_key(|entry| entry["port"].as_u64());
    assert_eq!((found.code, found.json()), (0, json!({"servers": expected})));
    // Its token says where to look, but not to strangers.
    let elsewhere = private_home();
    let refused = run(elsewhere.path(), &["rpc", "discover", "--ports", &first.port, "--json"]);
    assert_eq!(refused.json()["servers"][0]["auth"], "refused");
    let usual = run(first.home.path(), &["rpc", "discover", "--json"]).json();
    let ports = usual["servers"].as_array().unwrap().iter();
    assert!(ports.clone().any(|entry| entry["port"] == port(&first)), "{usual}");
    let none = run(elsewhere.path(), &["rpc", "discover", "--ports", &nobody]);
    assert_eq!(none, ran(3, "nothing answers\n", ""));
    assert_eq!(run(elsewhere.path(), &["rpc", "discover", "--ports", "9-3"]).code, 2);
}
