//! A net in memory: connections are pairs of pipes, and nothing takes time.
//! It never loses, delays or reorders a byte; the lane with a simulated network does that.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};

use nexus3::world::{BoxFuture, Listener, Net, Stream};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

/// What one direction of a connection holds before its writer waits.
const PIPE_BYTES: usize = 64 * 1024;
/// Connections that wait to be accepted; further ones wait to be made.
const BACKLOG_MAX: usize = 128;
/// The ports that a machine chooses from.
const PORT_FIRST: u16 = 49_152;
const HANDLES_MAX: usize = 1 << 20;

/// One network. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Pipes {
    table: Arc<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Guards who listens where. Held for a look or a change; nothing is awaited under it.
    doors: Mutex<Doors>,
}

#[derive(Debug, Default)]
struct Doors {
    by_address: BTreeMap<SocketAddr, mpsc::Sender<DuplexStream>>,
    /// How many ports were chosen: each is new, as long as there are any.
    chosen: u16,
}

impl Pipes {
    pub fn new() -> Self {
        Self::default()
    }
}

impl Net for Pipes {
    fn bind(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Listener>>> {
        Box::pin(async move {
            let (sender, waiting) = mpsc::channel(BACKLOG_MAX);
            let address = self.table.doors().open(address, sender)?;
            let table = Arc::clone(&self.table);
            Ok(Box::new(Door { address, waiting, table }) as Box<dyn Listener>)
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let door = self.table.doors().at(address);
            let door = door.ok_or(io::ErrorKind::ConnectionRefused)?;
            let (near, far) = tokio::io::duplex(PIPE_BYTES);
            // A door that closes while somebody waits before it refuses them.
            door.send(far).await.map_err(|_| io::ErrorKind::ConnectionRefused)?;
            Ok(Box::new(near) as Box<dyn Stream>)
        })
    }

    fn handles_max(&self) -> usize {
        HANDLES_MAX
    }
}

impl Table {
    fn doors(&self) -> MutexGuard<'_, Doors> {
        self.doors.lock().expect("nothing panics while it looks at the doors")
    }
}

impl Doors {
    fn open(
        &mut self,
        wanted: SocketAddr,
        sender: mpsc::Sender<DuplexStream>,
    ) -> io::Result<SocketAddr> {
        let address = if wanted.port() == 0 { self.choose(wanted.ip())? } else { wanted };
        if self.is_taken(address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        self.by_address.insert(address, sender);
        Ok(address)
    }

    fn choose(&mut self, ip: IpAddr) -> io::Result<SocketAddr> {
        let ports = u16::MAX - PORT_FIRST;
        for _ in 0..=ports {
            let address = SocketAddr::new(ip, PORT_FIRST + self.chosen % ports);
            self.chosen = (self.chosen + 1) % ports;
            if !self.is_taken(address) {
                return Ok(address);
            }
        }
        Err(io::ErrorKind::AddrInUse.into())
    }

    /// A listener on all addresses has its port on each of them.
    fn is_taken(&self, address: SocketAddr) -> bool {
        let same = |known: &SocketAddr| {
            known.port() == address.port()
                && known.is_ipv4() == address.is_ipv4()
                && (known.ip() == address.ip()
                    || known.ip().is_unspecified()
                    || address.ip().is_unspecified())
        };
        self.by_address.keys().any(same)
    }

    fn at(&self, address: SocketAddr) -> Option<mpsc::Sender<DuplexStream>> {
        let everywhere = match address.ip() {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let everywhere = SocketAddr::new(everywhere, address.port());
        self.by_address.get(&address).or_else(|| self.by_address.get(&everywhere)).cloned()
    }
}

#[derive(Debug)]
struct Door {
    address: SocketAddr,
    waiting: mpsc::Receiver<DuplexStream>,
    table: Arc<Table>,
}

impl Listener for Door {
    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }

    fn accept(&mut self) -> BoxFuture<'_, io::Result<Box<dyn Stream>>> {
        Box::pin(async move {
            let stream = self.waiting.recv().await;
            let stream = stream.expect("the table has a sender as long as the door is open");
            Ok(Box::new(stream) as Box<dyn Stream>)
        })
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.table.doors().by_address.remove(&self.address);
    }
}
