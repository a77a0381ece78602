//! The seams of a simulated machine pass the suites of the real one.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use nexus3::world::{BoxFuture, Confinement, Exit, Program, World};
use nexus3_sim::conform::{self, Cast, Place};
use nexus3_sim::machine::{
    Act, Acting, Given, Inline, Raised, Seeded, Stage, TurmoilNet, VirtualClock,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A machine whose disk and outgoing HTTP are the real ones: they have suites of their own.
fn machine(signals: Arc<Raised>) -> World {
    let real = nexus3::world::real::world().expect("this machine can be used");
    let acting = Acting::new(Arc::clone(&real.fs), |name, _| {
        let name = name.to_str()?.to_owned();
        PARTS.contains(&name.as_str()).then(|| Arc::new(Part(name)) as Arc<dyn Act>)
    });
    World {
        clock: Arc::new(VirtualClock::new(|| Duration::from_secs(1))),
        chance: Arc::new(Seeded::new(1)),
        net: Arc::new(TurmoilNet::default()),
        blocking: Arc::new(Inline),
        programs: Arc::new(acting),
        signals,
        environment: Arc::new(Given {
            vars: [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())].into(),
            current_dir: "/project".into(),
            home_dir: "/home/nexus".into(),
            process_id: 1,
        }),
        ..real
    }
}

const PARTS: [&str; 9] =
    ["env", "pwd", "true", "fails", "cat", "waits", "family", "leaves", "deaf"];

/// The parts of the programs' suite.
struct Part(String);

impl Act for Part {
    fn play(&self, stage: Stage) -> BoxFuture<'static, Exit> {
        let name = self.0.clone();
        Box::pin(async move { play(&name, stage).await })
    }
}

async fn play(name: &str, mut stage: Stage) -> Exit {
    let say = async |text: &str| {
        let _ = stage.stdout.lock().await.write_all(text.as_bytes()).await;
    };
    let waits_holding_output = |stage: &Stage| {
        let output = Arc::clone(&stage.stdout);
        stage.start(async move {
            let _output = output;
            std::future::pending::<()>().await;
        });
    };
    match name {
        "env" => {
            for (name, value) in &stage.program.environment {
                say(&format!("{}={}\n", name.display(), value.display())).await;
            }
        }
        "pwd" => say(&format!("{}\n", stage.program.directory.display())).await,
        "fails" => {
            say("out").await;
            let _ = stage.stderr.lock().await.write_all(b"err").await;
            return Exit::Code(7);
        }
        "cat" => {
            let mut bytes = [0; 1024];
            while let Ok(count @ 1..) = stage.stdin.read(&mut bytes).await {
                let _ = stage.stdout.lock().await.write_all(&bytes[..count]).await;
            }
        }
        "waits" => {
            say("ready\n").await;
            std::future::pending::<()>().await;
        }
        "deaf" => {
            stage.ignore_termination();
            say("ready\n").await;
            std::future::pending::<()>().await;
        }
        "family" => {
            waits_holding_output(&stage);
            say("ready\n").await;
            std::future::pending::<()>().await;
        }
        "leaves" => {
            waits_holding_output(&stage);
            say("ready\n").await;
        }
        _ => {}
    }
    Exit::Code(0)
}

fn part(name: &str) -> Program {
    Program {
        program: format!("/usr/bin/{name}").into(),
        arguments: vec![],
        directory: PathBuf::from("/"),
        environment: vec![],
        confinement: Confinement::None,
    }
}

fn cast() -> Cast {
    let path = ("PATH".into(), "/usr/bin".into());
    Cast {
        environment: part("env"),
        directory: part("pwd"),
        found: Program { program: "true".into(), environment: vec![path], ..part("true") },
        fails: part("fails"),
        copies: part("cat"),
        waits: part("waits"),
        waits_with_child: part("family"),
        leaves_child: part("leaves"),
        // There are no sessions here: whatever a program starts belongs to it.
        leaves_session: part("leaves"),
        ignores_termination: part("deaf"),
    }
}

#[tokio::test(start_paused = true)]
async fn clock_chance_blocking_and_environment_keep_their_contracts() {
    let world = machine(Arc::default());
    conform::clock(&world).await;
    conform::chance(&world).await;
    conform::blocking(&world).await;
    conform::environment(&world).await;
}

#[tokio::test(start_paused = true)]
async fn raised_signals_keep_the_contract_of_signals() {
    let signals = Arc::new(Raised::default());
    let world = machine(Arc::clone(&signals));
    conform::signals(&world, |_| signals.raise()).await;
}

#[tokio::test(start_paused = true)]
async fn acts_keep_the_contract_of_programs() {
    let scratch = tempfile::tempdir().expect("there is room for a temporary directory");
    let world = machine(Arc::default());
    let scratch = world.fs.canonical(scratch.path()).expect("it exists");
    conform::programs(&world, &cast(), &scratch).await;
}

#[test]
fn turmoil_keeps_the_contract_of_net() {
    let mut sim = turmoil::Builder::new()
        .rng_seed(1)
        .tick_duration(Duration::from_millis(1))
        .simulation_duration(Duration::from_mins(10))
        .enable_tokio_io()
        .build();
    sim.client("host", async {
        let place = Place { bind: IpAddr::V4(Ipv4Addr::LOCALHOST), reach: turmoil::lookup("host") };
        conform::net(&machine(Arc::default()), place).await;
        Ok(())
    });
    sim.run().expect("the suite passes");
}
