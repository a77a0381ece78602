//! The net in memory and the HTTP client over it keep the contracts that the real ones keep.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::Request;
use nexus3::world::{HttpFault, Net, World, real};
use nexus3_sim::conform::{self, Place};
use nexus3_sim::http_client::HttpClient;
use nexus3_sim::pipes::Pipes;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const EVERYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// The real machine with its sockets replaced.
fn world() -> World {
    let net: Arc<dyn Net> = Arc::new(Pipes::new());
    let http = Arc::new(HttpClient::new(Arc::clone(&net)));
    World { net, http, ..real::world().expect("the machine opens") }
}

#[tokio::test(start_paused = true)]
async fn pipes_keep_the_contract_of_net() {
    for bind in [LOOPBACK, EVERYWHERE] {
        conform::net(&world(), Place { bind, reach: LOOPBACK }).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_client_over_pipes_keeps_the_contract_of_http() {
    conform::http(&world(), Place { bind: LOOPBACK, reach: LOOPBACK }).await;
}

#[tokio::test]
async fn the_client_over_real_sockets_keeps_the_contract_of_http() {
    let mut world = real::world().expect("the machine opens");
    world.http = Arc::new(HttpClient::new(Arc::clone(&world.net)));
    conform::http(&world, Place { bind: LOOPBACK, reach: LOOPBACK }).await;
}

#[tokio::test(start_paused = true)]
async fn a_port_on_all_addresses_is_taken_on_each() {
    let net = Pipes::new();
    let everywhere = net.bind(SocketAddr::new(EVERYWHERE, 80)).await.expect("the port is free");
    assert!(net.bind(SocketAddr::new(LOOPBACK, 80)).await.is_err(), "it is taken on loopback");
    let v6 = net.bind("[::1]:80".parse().expect("an address")).await;
    assert!(v6.is_ok(), "the other family has ports of its own");
    drop(everywhere);
    assert!(net.bind(SocketAddr::new(LOOPBACK, 80)).await.is_ok(), "it is free again");
}

#[tokio::test(start_paused = true)]
async fn what_needs_tls_or_names_cannot_be_connected() {
    for uri in ["https://127.0.0.1/", "http://example.com/"] {
        let request = Request::get(uri).body(Bytes::new()).expect("it is well formed");
        let error = world().http.send(request).await.expect_err("nobody is there");
        assert_eq!(error.fault, HttpFault::Connect, "{uri}");
    }
}
