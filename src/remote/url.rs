//! Where the store is, as it is written for `--store`.
use std::{fmt, str::FromStr};

use percent_encoding::percent_decode_str;
use url::{Host, Url};

const PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;
const SCHEMES: [(&str, &str); 3] = [
    ("redis", "rediss"),
    ("redis+sentinel", "rediss+sentinel"),
    ("redis-cluster", "rediss-cluster"),
];

/// Where the store is. It holds neither user nor password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreUrl {
    pub(super) form: Form,
    pub(super) tls: bool,
    /// At least one.
    pub(super) addresses: Vec<Address>,
    pub(super) db: i64,
}

/// What stands at the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One server.
    Server,
    /// Sentinels, which know the server.
    Sentinel { master: String },
    /// Some nodes of a cluster.
    Cluster,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// Everything that is wrong with a store's URL. It does not repeat what may be a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a store's URL: {}", .0.join("; "))]
pub struct StoreUrlError(Vec<String>);

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<StoreUrl, StoreUrlError> {
        let mut wrong = Vec::new();
        let known = || {
            let all = SCHEMES.map(|(plain, tls)| format!("`{plain}://`, `{tls}://`"));
            format!("it must begin with one of {}", all.join(", "))
        };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(StoreUrlError(vec![known()]));
        };
        let row = SCHEMES.iter().position(|(plain, tls)| [plain, tls].contains(&&scheme));
        let tls = SCHEMES.iter().any(|(_, tls)| *tls == scheme);
        if row.is_none() {
            wrong.push(known());
        }
        // First of all: whatever stands before it may be a password with any character in it.
        let rest = match rest.rsplit_once('@') {
            Some((_, rest)) => {
                wrong.push(
                    "user and password do not belong into it; give them as `--store-user` and `--store-password-file`, or in the variable `RETRYD_STORE_PASSWORD`"
                        .to_owned(),
                );
                rest
            }
            None => rest,
        };
        let (rest, extra) = match rest.find(['?', '#']) {
            Some(place) => rest.split_at(place),
            None => (rest, ""),
        };
        if !extra.is_empty() {
            wrong.push("`?` and `#` mean nothing in it".to_owned());
        }
        let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (form, db) = match row {
            Some(1) => sentinel(path, &mut wrong),
            Some(2) => {
                if !path.is_empty() {
                    wrong.push("a cluster has no numbered databases".to_owned());
                }
                (Form::Cluster, 0)
            }
            _ => (Form::Server, database(path, &mut wrong)),
        };
        let port = if row == Some(1) { SENTINEL_PORT } else { PORT };
        let addresses: Vec<Address> =
            hosts.split(',').filter_map(|host| address(host, port, &mut wrong)).collect();
        if form == Form::Server && 1 < addresses.len() {
            wrong.push("a single server has one address".to_owned());
        }
        if wrong.is_empty() {
            Ok(StoreUrl { form, tls, addresses, db })
        } else {
            Err(StoreUrlError(wrong))
        }
    }
}

impl StoreUrl {
    /// The beginning of this URL.
    pub(super) fn scheme(&self) -> &'static str {
        let (plain, tls) = self.schemes();
        if self.tls { tls } else { plain }
    }

    /// The beginning of the same with TLS.
    pub(super) fn tls_scheme(&self) -> &'static str {
        self.schemes().1
    }

    fn schemes(&self) -> (&'static str, &'static str) {
        let [server, sentinel, cluster] = SCHEMES;
        match &self.form {
            Form::Server => server,
            Form::Sentinel { .. } => sentinel,
            Form::Cluster => cluster,
        }
    }
}

/// `MASTER_NAME[/db]`.
fn sentinel(path: &str, wrong: &mut Vec<String>) -> (Form, i64) {
    let (name, db) = path.split_once('/').unwrap_or((path, ""));
    let master = percent_decode_str(name).decode_utf8_lossy().into_owned();
    if master.is_empty() {
        wrong.push("after the sentinels, `/` and the master's name must follow".to_owned());
    }
    (Form::Sentinel { master }, database(db, wrong))
}

fn database(text: &str, wrong: &mut Vec<String>) -> i64 {
    if text.is_empty() {
        return 0;
    }
    text.parse::<u16>().map_or_else(
        |_| {
            wrong.push(format!("the database is not a number from 0 to {}", u16::MAX));
            0
        },
        i64::from,
    )
}

/// `host[:port]`.
fn address(text: &str, default: u16, wrong: &mut Vec<String>) -> Option<Address> {
    let address = Url::parse(&format!("redis://{text}")).ok().and_then(|url| {
        let host = match url.host()? {
            Host::Domain(name) if !name.is_empty() && !name.contains('%') => name.to_owned(),
            Host::Domain(_) => return None,
            Host::Ipv4(ip) => ip.to_string(),
            Host::Ipv6(ip) => ip.to_string(),
        };
        let port = url.port().unwrap_or(default);
        (port != 0).then_some(Address { host, port })
    });
    if address.is_none() {
        // It is not shown: a password may be in it.
        wrong.push("an address is not `host` or `host:port`".to_owned());
    }
    address
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(Address::to_string).collect();
        write!(f, "{}://{}", self.scheme(), addresses.join(","))?;
        if let Form::Sentinel { master } = &self.form {
            write!(f, "/{master}")?;
        }
        if self.db != 0 { write!(f, "/{}", self.db) } else { Ok(()) }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Address { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_has_a_default() {
        for (text, full) in [
            ("redis://store", "redis://store:6379"),
            ("redis://store:1/7", "redis://store:1/7"),
            ("rediss://[::1]:7000/", "rediss://[::1]:7000"),
            ("redis://10.0.0.1/0", "redis://10.0.0.1:6379"),
            ("redis+sentinel://a,b:1/main", "redis+sentinel://a:26379,b:1/main"),
            ("rediss+sentinel://a/my%20main/3", "rediss+sentinel://a:26379/my main/3"),
            ("redis-cluster://a:1,b", "redis-cluster://a:1,b:6379"),
            ("rediss-cluster://a", "rediss-cluster://a:6379"),
        ] {
            let url: StoreUrl = text.parse().unwrap_or_else(|error| panic!("`{text}`: {error}"));
            assert_eq!(url.to_string(), full);
        }
    }

    #[test]
    fn every_wrong_part_is_named_and_no_password() {
        for (text, parts) in [
            ("store:6379", &["must begin with one of `redis://`, `rediss://`"][..]),
            ("http://store", &["must begin with one of"]),
            ("redis://", &["an address is not"]),
            ("redis://a,b", &["one address"]),
            ("redis://store:x/y", &["an address is not", "the database is not"]),
            ("redis://store:70000", &["an address is not"]),
            ("redis://sto%20re", &["an address is not"]),
            ("redis://me:s3cr%40store", &["an address is not"]),
            ("redis://store/s3cr", &["the database is not"]),
            ("redis://store/1?db=2", &["`?`"]),
            ("redis+sentinel://a", &["the master's name"]),
            ("redis-cluster://a/1", &["no numbered databases"]),
            ("redis://me:s3cr@t@store", &["`--store-user`", "`RETRYD_STORE_PASSWORD`"]),
            ("redis://me:s3cr/t@store", &["`--store-user`"]),
            ("redis://me:s3cr?t@store", &["`--store-user`"]),
            ("redis://me:s3cr#t@store", &["`--store-user`"]),
        ] {
            let error = text.parse::<StoreUrl>().unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "`{text}`: {error}");
            }
            assert!(!error.contains("s3cr"), "{error}");
        }
    }
}
