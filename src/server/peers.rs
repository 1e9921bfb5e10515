//! Connections open, by who opened them: so that one caller that opens too many shuts nobody out.
use std::{
    collections::HashMap,
    fmt,
    net::{IpAddr, Ipv6Addr},
    sync::Arc,
};

use ahash::RandomState;
use parking_lot::Mutex;

use super::connection::ConnectInfo;

/// Who opened a connection, as far as it is known when the connection is accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Peer {
    Address(IpAddr),
}

impl Peer {
    /// `None` for a process of this machine: it has no address, and the permissions of the socket's
    /// file say who may come.
    pub(crate) fn of(info: ConnectInfo) -> Option<Peer> {
        match info {
            ConnectInfo::Tcp(address) => Some(Peer::Address(site(address.ip()))),
            ConnectInfo::Unix => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Peer::Address(ip) = self;
        ip.fmt(f)
    }
}

/// The same machine, whether it came by IPv4 or by IPv4 in IPv6. Of an IPv6 address the network: a
/// machine has all the addresses of a /64 (RFC 7421).
fn site(ip: IpAddr) -> IpAddr {
    const NETWORK: u128 = !(u64::MAX as u128);
    match ip.to_canonical() {
        IpAddr::V4(ip) => IpAddr::V4(ip),
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & NETWORK)),
    }
}

/// The connections of each peer. Who has none takes no memory.
#[derive(Debug)]
pub(crate) struct Peers {
    each_max: usize,
    open: Mutex<HashMap<Peer, usize, RandomState>>,
}

impl Peers {
    pub(crate) fn new(each_max: usize) -> Arc<Peers> {
        Arc::new(Peers { each_max, open: Mutex::default() })
    }

    /// A place among the connections of `peer`. `None` if it has as many as allowed.
    pub(crate) fn take(self: &Arc<Peers>, peer: Peer) -> Option<PeerSlot> {
        let mut open = self.open.lock();
        let has = open.get(&peer).copied().unwrap_or(0);
        if self.each_max <= has {
            return None;
        }
        open.insert(peer, has + 1);
        Some(PeerSlot { peers: Arc::clone(self), peer })
    }
}

/// One connection of a peer, until it is dropped.
#[derive(Debug)]
pub(crate) struct PeerSlot {
    peers: Arc<Peers>,
    peer: Peer,
}

impl Drop for PeerSlot {
    fn drop(&mut self) {
        let mut open = self.peers.open.lock();
        match open.get_mut(&self.peer) {
            Some(has) if 1 < *has => *has -= 1,
            Some(_) | None => {
                open.remove(&self.peer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(address: &str) -> Peer {
        Peer::of(ConnectInfo::Tcp(address.parse().unwrap())).unwrap()
    }

    #[test]
    fn each_peer_has_places_of_its_own_and_leaves_nothing_behind() {
        let peers = Peers::new(2);
        let (a, b) = (peer("10.0.0.1:1"), peer("10.0.0.2:1"));
        let held = (peers.take(a), peers.take(a));
        assert!(held.0.is_some() && held.1.is_some());
        assert!(peers.take(a).is_none());
        let other = peers.take(b);
        assert!(other.is_some());
        drop(held.0);
        let again = peers.take(a);
        assert!(again.is_some());
        assert!(peers.take(a).is_none());
        drop((held.1, other, again));
        assert!(peers.open.lock().is_empty());
    }

    #[test]
    fn a_peer_is_an_address_or_a_network_without_its_port() {
        assert_eq!(peer("10.0.0.1:1"), peer("10.0.0.1:2"));
        assert_eq!(peer("10.0.0.1:1"), peer("[::ffff:10.0.0.1]:1"));
        assert_eq!(peer("[2001:db8::1]:1"), peer("[2001:db8::2]:1"));
        assert_ne!(peer("[2001:db8:0:1::1]:1"), peer("[2001:db8:0:2::1]:1"));
        assert_eq!(Peer::of(ConnectInfo::Unix), None);
    }
}
