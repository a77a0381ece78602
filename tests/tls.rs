//! Authorities of one's own, over real TLS: a server on loopback whose certificate only the `ca_file`
//! vouches for.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::TryStreamExt;
use http::{Request, StatusCode};
use nexus3::config::{Config, ModelConfig, NetworkConfig, ProviderConfig, ProviderKind};
use nexus3::provider::{ModelError, Models, Probed, probe};
use nexus3::world::{
    Authorities, AuthoritiesError, Http, HttpError, HttpFault, HttpResponse, HttpTerms, World, real,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tempfile::NamedTempFile;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_rustls::TlsAcceptor;

fn world() -> World {
    real::world().expect("the machine opens")
}

/// An authority, as PEM, and a server for `localhost` that it vouches for.
fn certified() -> (String, TlsAcceptor) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().expect("a key is made");
    let pem = authority.self_signed(&authority_key).expect("it signs itself").pem();
    let key = KeyPair::generate().expect("a key is made");
    let names = vec!["localhost".to_owned()];
    let certificate = CertificateParams::new(names)
        .and_then(|params| params.signed_by(&key, &Issuer::new(authority, authority_key)))
        .expect("the authority signs");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows them")
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::clone(certificate.der())],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .expect("the key fits the certificate");
    (pem, TlsAcceptor::from(Arc::new(config)))
}

/// What a request to the server comes to, and whether the server saw one.
async fn asked(
    http: &dyn Http,
    acceptor: &TlsAcceptor,
) -> (Option<String>, Result<HttpResponse, HttpError>) {
    let ask = async |port: u16| {
        let request = Request::get(format!("https://localhost:{port}/")).body(Bytes::new());
        http.send(request.expect("the request is well formed")).await
    };
    answering(acceptor, ask).await
}

/// What comes of asking a server on a port, and the first line that the server saw.
async fn answering<T>(
    acceptor: &TlsAcceptor,
    ask: impl AsyncFnOnce(u16) -> T,
) -> (Option<String>, T) {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut listener = world().net.bind(any).await.expect("a port is bound");
    let port = listener.local_addr().expect("it has an address").port();
    let peer = async {
        let stream = listener.accept().await.expect("the client connects");
        let mut stream = BufReader::new(acceptor.accept(stream).await.ok()?);
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
        stream.write_all(answer).await.expect("the client reads its answer");
        stream.flush().await.expect("the client reads its answer");
        Some(line)
    };
    tokio::join!(peer, ask(port))
}

#[tokio::test]
async fn a_peer_is_trusted_by_the_authorities_of_the_terms_alone() {
    let (pem, acceptor) = certified();
    let (other, _) = certified();
    // A file may hold several, and text between them.
    let authorities = Authorities::parse(format!("{other}\nthe second one:\n{pem}").as_bytes())
        .expect("both are authorities");
    let terms = HttpTerms { authorities, ..HttpTerms::default() };
    let trusting = world().http.with(&terms);
    let (seen, answer) = asked(trusting.as_ref(), &acceptor).await;
    assert_eq!(seen.as_deref(), Some("GET / HTTP/1.1\r\n"));
    let answer = answer.expect("the authority vouches for it");
    assert_eq!(answer.status, StatusCode::OK);
    let body: Vec<Bytes> = answer.body.try_collect().await.expect("the body is whole");
    assert_eq!(body.concat(), b"hi");

    let authorities = Authorities::parse(other.as_bytes()).expect("it is an authority");
    let mistaken = world().http.with(&HttpTerms { authorities, ..HttpTerms::default() });
    for http in [world().http, mistaken] {
        let (seen, answer) = asked(http.as_ref(), &acceptor).await;
        assert_eq!(seen, None, "nothing is said to a stranger");
        let error = answer.expect_err("nobody vouches for it");
        assert_eq!(error.fault, HttpFault::Connect, "{error:?}");
    }
}

fn models(ca_file: &Path) -> Result<Models, ModelError> {
    let provider = ProviderConfig {
        ca_file: Some(ca_file.to_owned()),
        models: [("m".to_owned(), ModelConfig::of("m"))].into(),
        ..ProviderConfig::of(ProviderKind::Vllm)
    };
    let config = Config { providers: [("p".to_owned(), provider)].into(), ..Config::default() };
    Models::new(&world(), &config, None)
}

fn file(content: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a test may write a file");
    file.write_all(content.as_bytes()).expect("a test may write a file");
    file
}

#[tokio::test]
async fn a_provider_is_trusted_by_its_own_authorities() {
    let (pem, acceptor) = certified();
    let pem = file(&pem);
    let asked = async |ca_file: Option<&Path>| {
        let ask = async |port: u16| {
            let provider = ProviderConfig {
                base_url: Some(format!("https://localhost:{port}/v1")),
                ca_file: ca_file.map(Path::to_owned),
                ..ProviderConfig::of(ProviderKind::Vllm)
            };
            probe(&world(), "p", &provider, &NetworkConfig::default()).await
        };
        answering(&acceptor, ask).await
    };
    let (seen, probed) = asked(Some(pem.path())).await;
    assert_eq!(seen.as_deref(), Some("GET /v1/models HTTP/1.1\r\n"));
    assert_eq!(probed.expect("the authority vouches for it"), Probed::Welcome);
    let (seen, probed) = asked(None).await;
    assert_eq!(seen, None, "no key is shown to a stranger");
    assert!(probed.is_err(), "nobody vouches for it");
}

#[tokio::test]
async fn a_file_without_authorities_is_refused_at_the_start() {
    let (pem, _) = certified();
    assert!(models(file(&pem).path()).is_ok(), "an authority will do");
    let told = |content: &str| match models(file(content).path()) {
        Err(ModelError::Authorities { provider, source, .. }) => {
            assert_eq!(provider, "p");
            source
        }
        other => panic!("this is no file of authorities: {other:?}"),
    };
    assert!(matches!(told(""), AuthoritiesError::Empty));
    assert!(matches!(told("no certificate at all"), AuthoritiesError::Empty));
    let cut = pem.lines().next().expect("PEM has lines");
    assert!(matches!(told(cut), AuthoritiesError::Pem { .. }));
    let broken = format!("{pem}-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n");
    assert!(matches!(told(&broken), AuthoritiesError::Certificate { number: 2, .. }));
    let gone = file(&pem).path().to_owned();
    assert!(matches!(models(&gone), Err(ModelError::CaFile { .. })));
}
