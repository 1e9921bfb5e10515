//! Connections open, by where they come from: so that one caller that opens too many shuts nobody out.
use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use ahash::RandomState;
use parking_lot::Mutex;

use super::connection::ConnectInfo;

/// Where a connection comes from: all that is known of its caller when it is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Site {
    Address(IpAddr),
}

impl Site {
    /// `None` for a process of this machine: it has no address, and the permissions of the socket's
    /// file say who may come.
    pub(crate) fn of(info: ConnectInfo) -> Option<Site> {
        match info {
            ConnectInfo::Tcp(address) => Some(Site::Address(of_ip(address.ip()))),
            ConnectInfo::Unix => None,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site::Address(ip) = self;
        ip.fmt(f)
    }
}

/// The same machine, whether it came by IPv4 or by IPv4 in IPv6. Of an IPv6 address the network: a
/// machine has all the addresses of a /64 (RFC 7421).
fn of_ip(ip: IpAddr) -> IpAddr {
    const NETWORK: u128 = !(u64::MAX as u128);
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK)),
    }
}

/// The connections of each site. Who has none takes no memory.
#[derive(Debug)]
pub(crate) struct Sites {
    each_max: usize,
    open: Mutex<HashMap<Site, usize, RandomState>>,
}

impl Sites {
    pub(crate) fn new(each_max: usize) -> Arc<Sites> {
        Arc::new(Sites { each_max, open: Mutex::default() })
    }

    /// A place among the connections of `site`. `None` if it has as many as allowed.
    pub(crate) fn take(self: &Arc<Sites>, site: Site) -> Option<SitePlace> {
        let mut open = self.open.lock();
        let has = open.get(&site).copied().unwrap_or(0);
        if self.each_max <= has {
            return None;
        }
        open.insert(site, has + 1);
        Some(SitePlace { sites: Arc::clone(self), site })
    }
}

/// One connection of a site, until it is dropped.
#[derive(Debug)]
pub(crate) struct SitePlace {
    sites: Arc<Sites>,
    site: Site,
}

impl Drop for SitePlace {
    fn drop(&mut self) {
        let mut open = self.sites.open.lock();
        match open.get_mut(&self.site) {
            Some(has) if 1 < *has => *has -= 1,
            Some(_) | None => {
                open.remove(&self.site);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Site {
        Site::of(ConnectInfo::Tcp(address.parse().unwrap())).unwrap()
    }

    #[test]
    fn each_site_has_places_of_its_own_and_leaves_nothing_behind() {
        let sites = Sites::new(2);
        let (a, b) = (at("10.0.0.1:1"), at("10.0.0.2:1"));
        let held = (sites.take(a), sites.take(a));
        assert!(held.0.is_some() && held.1.is_some());
        assert!(sites.take(a).is_none());
        let other = sites.take(b);
        assert!(other.is_some());
        drop(held.0);
        let again = sites.take(a);
        assert!(again.is_some());
        assert!(sites.take(a).is_none());
        drop((held.1, other, again));
        assert!(sites.open.lock().is_empty());
    }

    #[test]
    fn a_site_is_an_address_or_a_network_without_its_port() {
        assert_eq!(at("10.0.0.1:1"), at("10.0.0.1:2"));
        assert_eq!(at("10.0.0.1:1"), at("[::ffff:10.0.0.1]:1"));
        assert_eq!(at("[2001:db8::1]:1"), at("[2001:db8::2]:1"));
        assert_ne!(at("[2001:db8:0:1::1]:1"), at("[2001:db8:0:2::1]:1"));
        assert_eq!(Site::of(ConnectInfo::Unix), None);
    }
}
