//! How the store is reached: its addresses, who this service is there, and whom it trusts.
use std::{fmt, fs, path::PathBuf, time::Duration};

use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, IntoConnectionInfo as _, RedisConnectionInfo,
    RedisError, RedisResult, TlsCertificates, TlsMode,
    aio::MultiplexedConnection,
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};

use super::SettingsError;
use super::url::{Address, Form, StoreUrl};

/// How long a cluster's client waits for one node: to connect, and of a call's time for an answer.
/// A node that is silent must not use up the time of the others.
const NODE_CONNECT_MAX: Duration = Duration::from_millis(200);
const NODE_SHARE: (u32, u32) = (4, 5);

/// Who this service is in the store. They are never shown.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The name in the store's access list; without it, its default user.
    pub user: Option<String>,
    /// The user's password.
    pub password: Option<String>,
}

pub(super) enum Connection {
    Server(MultiplexedConnection),
    Cluster(ClusterConnection),
}

/// Everything that it takes to connect.
pub(super) struct Place {
    url: StoreUrl,
    credentials: Credentials,
    certificates: Option<TlsCertificates>,
    call_max: Duration,
}

impl Place {
    pub(super) fn new(
        url: StoreUrl,
        credentials: Credentials,
        ca_file: Option<PathBuf>,
        call_max: Duration,
    ) -> Result<Place, SettingsError> {
        if let (Some(user), None) = (&credentials.user, &credentials.password) {
            return Err(SettingsError::UserWithoutPassword(user.clone()));
        }
        let certificates = match ca_file {
            None => None,
            Some(_) if !url.tls => {
                return Err(SettingsError::CaWithoutTls {
                    plain: url.scheme(),
                    tls: url.tls_scheme(),
                });
            }
            Some(path) => {
                let error = |cause: String| SettingsError::CaFile {
                    path: path.display().to_string(),
                    cause,
                };
                let pem = fs::read(&path).map_err(|cause| error(cause.to_string()))?;
                let certificates = TlsCertificates { client_tls: None, root_cert: Some(pem) };
                Some(certificates)
            }
        };
        Ok(Place { url, credentials, certificates, call_max })
    }

    /// Connects. Each turn asks the sentinels in another order, so that a silent one does not end
    /// every attempt.
    pub(super) async fn connect(&self, turn: usize) -> RedisResult<Connection> {
        match &self.url.form {
            Form::Server => {
                let [address, ..] = self.url.addresses.as_slice() else { return Err(no_address()) };
                let settings = self.session();
                let info =
                    self.address(address).into_connection_info()?.set_redis_settings(settings);
                let client = match &self.certificates {
                    Some(certificates) => Client::build_with_tls(info, certificates.clone())?,
                    None => Client::open(info)?,
                };
                to_server(&client).await
            }
            Form::Sentinel { master } => {
                let mut sentinels = self.url.addresses.clone();
                let first = turn.checked_rem(sentinels.len()).ok_or_else(no_address)?;
                sentinels.rotate_left(first);
                let open = self.sentinel(&sentinels, master, false)?.async_get_client().await;
                let client = match open {
                    Err(error) if wants_password(&error) => {
                        self.sentinel(&sentinels, master, true)?.async_get_client().await?
                    }
                    result => result?,
                };
                to_server(&client).await
            }
            Form::Cluster => self.cluster()?.get_async_connection().await.map(Connection::Cluster),
        }
    }

    fn address(&self, address: &Address) -> ConnectionAddr {
        let (host, port) = (address.host.clone(), address.port);
        if self.url.tls {
            ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(host, port)
        }
    }

    fn session(&self) -> RedisConnectionInfo {
        let mut session = RedisConnectionInfo::default()
            .set_db(self.url.db)
            .set_lib_name("retryd", env!("CARGO_PKG_VERSION"));
        if let Some(user) = &self.credentials.user {
            session = session.set_username(user);
        }
        if let Some(password) = &self.credentials.password {
            session = session.set_password(password);
        }
        session
    }

    /// Asks sentinels for the master. They have a password of their own or, mostly, none.
    fn sentinel(
        &self,
        sentinels: &[Address],
        master: &str,
        signs_in: bool,
    ) -> RedisResult<SentinelClient> {
        let addresses = sentinels.iter().map(|sentinel| self.address(sentinel));
        let mut builder =
            SentinelClientBuilder::new(addresses, master, SentinelServerType::Master)?
                .set_client_to_redis_db(self.url.db);
        if self.url.tls {
            builder = builder
                .set_client_to_redis_tls_mode(TlsMode::Secure)
                .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        }
        if let Some(certificates) = &self.certificates {
            builder = builder
                .set_client_to_redis_certificates(certificates.clone())
                .set_client_to_sentinel_certificates(certificates.clone());
        }
        if let Some(user) = &self.credentials.user {
            builder = builder.set_client_to_redis_username(user);
            if signs_in {
                builder = builder.set_client_to_sentinel_username(user);
            }
        }
        if let Some(password) = &self.credentials.password {
            builder = builder.set_client_to_redis_password(password);
            if signs_in {
                builder = builder.set_client_to_sentinel_password(password);
            }
        }
        builder.build()
    }

    fn cluster(&self) -> RedisResult<ClusterClient> {
        let nodes = self.url.addresses.iter().map(|address| self.address(address));
        let (part, whole) = NODE_SHARE;
        let answer_max = self.call_max / whole * part;
        let mut builder = ClusterClient::builder(nodes)
            // Repeating is decided in `batch`: only there it is known what was refused.
            .retries(0)
            .connection_timeout(NODE_CONNECT_MAX)
            .response_timeout(answer_max)
            .overall_response_timeout(Some(answer_max));
        if self.url.tls {
            builder = builder.tls(TlsMode::Secure);
        }
        if let Some(certificates) = &self.certificates {
            builder = builder.certs(certificates.clone());
        }
        if let Some(user) = &self.credentials.user {
            builder = builder.username(user);
        }
        if let Some(password) = &self.credentials.password {
            builder = builder.password(password);
        }
        builder.build()
    }
}

/// No time-outs of its own: whoever waits has one.
async fn to_server(client: &Client) -> RedisResult<Connection> {
    let config =
        AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    // Says at once what every call would be refused for: no password, still loading.
    let () = redis::cmd("PING").exec_async(&mut connection).await?;
    Ok(Connection::Server(connection))
}

fn wants_password(error: &RedisError) -> bool {
    error.code() == Some("NOAUTH")
}

fn no_address() -> RedisError {
    RedisError::from((redis::ErrorKind::InvalidClientConfig, "no address"))
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.url)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { url, credentials, certificates, call_max: _ } = self;
        f.debug_struct("Place")
            .field("url", url)
            .field("credentials", credentials)
            .field("has_certificates", &certificates.is_some())
            .finish()
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}
