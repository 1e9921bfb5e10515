//! Addresses to listen on, and the sockets bound to them.
use std::{
    fmt, fs, io,
    net::{IpAddr, SocketAddr},
    os::unix::fs::{FileTypeExt as _, MetadataExt as _},
    path::{Path, PathBuf},
    str::FromStr,
};

use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream, lookup_host};

use super::{connection::ConnectInfo, limits::BACKLOG};

/// An address to listen on: `HOST:PORT`, or `unix:PATH`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// A TCP port. IPv6 addresses stand in brackets.
    Tcp {
        /// An IP address, or a name that is looked up when binding.
        host: Box<str>,
        /// The port; 0 lets the system choose one.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Listen {
    /// Whether only processes of this machine can reach it.
    pub fn is_loopback(&self) -> bool {
        match self {
            Listen::Tcp { host, .. } => {
                &**host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
            }
            Listen::Unix(_) => true,
        }
    }

    /// Binds the address. Connections are queued from now on.
    ///
    /// # Errors
    ///
    /// What the system says, with the address.
    pub async fn bind(&self) -> Result<Bound, BindError> {
        let bound = match self {
            Listen::Tcp { host, port } => bind_tcp(host, *port).await,
            Listen::Unix(path) => bind_unix(path).await,
        };
        bound.map_err(|cause| BindError { address: self.clone(), cause })
    }

    /// Binds all of them, or none.
    ///
    /// # Errors
    ///
    /// As [`bind`](Listen::bind), for the first that cannot be bound.
    pub async fn bind_all(addresses: &[Listen]) -> Result<Vec<Bound>, BindError> {
        let mut bound = Vec::with_capacity(addresses.len());
        for address in addresses {
            bound.push(address.bind().await?);
        }
        Ok(bound)
    }
}

/// An address that could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on `{address}`: {cause}")]
pub struct BindError {
    address: Listen,
    cause: io::Error,
}

/// A text that is no address to listen on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no address to listen on: write `HOST:PORT`, as in `127.0.0.1:50051`, or `unix:PATH`"
)]
pub struct NotAnAddress(String);

impl FromStr for Listen {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Listen, NotAnAddress> {
        let parsed = match text.strip_prefix("unix:") {
            Some(path) => {
                Some(path).filter(|path| !path.is_empty()).map(|path| Listen::Unix(path.into()))
            }
            None => parse_tcp(text),
        };
        parsed.ok_or_else(|| NotAnAddress(text.to_owned()))
    }
}

fn parse_tcp(text: &str) -> Option<Listen> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let host = match host.strip_prefix('[') {
        Some(ip) => {
            ip.strip_suffix(']').filter(|ip| ip.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()))?
        }
        None => Some(host).filter(|host| !host.is_empty() && !host.contains([':', '/', ' ']))?,
    };
    Some(Listen::Tcp { host: host.into(), port })
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Listen::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Listen::Tcp { host, port } => write!(f, "{host}:{port}"),
            Listen::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A bound socket. The file of a Unix socket goes with it.
#[derive(Debug)]
pub struct Bound {
    local: Listen,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Tcp(TcpListener),
    // The file is removed before the listener closes: later it might be another process's.
    Unix { _file: OwnFile, listener: UnixListener },
}

/// An accepted socket.
pub(crate) enum Socket {
    Tcp(TcpStream, SocketAddr),
    Unix(UnixStream),
}

impl Socket {
    pub(crate) fn info(&self) -> ConnectInfo {
        match self {
            Socket::Tcp(_, peer) => ConnectInfo::Tcp(*peer),
            Socket::Unix(_) => ConnectInfo::Unix,
        }
    }
}

impl Bound {
    /// Where it listens, with the port that the system chose.
    pub fn local(&self) -> &Listen {
        &self.local
    }

    pub(crate) async fn accept(&self) -> io::Result<Socket> {
        match &self.kind {
            Kind::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                // Answers are small: each should leave at once. If that fails, the peer is gone.
                stream.set_nodelay(true).ok();
                Ok(Socket::Tcp(stream, peer))
            }
            Kind::Unix { listener, .. } => Ok(Socket::Unix(listener.accept().await?.0)),
        }
    }
}

async fn bind_tcp(host: &str, port: u16) -> io::Result<Bound> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((host, port)).await? {
        match listen_tcp(address) {
            Ok(listener) => {
                let local = listener.local_addr()?;
                let local = Listen::Tcp { host: local.ip().to_string().into(), port: local.port() };
                return Ok(Bound { local, kind: Kind::Tcp(listener) });
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A restart must not wait for connections of the process before it.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

async fn bind_unix(path: &Path) -> io::Result<Bound> {
    let listener = match UnixListener::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path).await => {
            fs::remove_file(path)?;
            UnixListener::bind(path)?
        }
        bound => bound?,
    };
    let file = OwnFile::at(path)?;
    Ok(Bound { local: Listen::Unix(path.to_owned()), kind: Kind::Unix { _file: file, listener } })
}

/// A socket file at which nobody answers, left by a process that was killed.
async fn is_stale(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
        && UnixStream::connect(path)
            .await
            .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// A socket file that this process made, removed when dropped if it is still the same one.
#[derive(Debug)]
struct OwnFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl OwnFile {
    fn at(path: &Path) -> io::Result<OwnFile> {
        Ok(OwnFile { path: path.to_owned(), identity: identity(path)? })
    }
}

impl Drop for OwnFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|now| now == self.identity) {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|file| (file.dev(), file.ino()))
}
