//! Who asks, as far as it is proven.
use std::sync::Arc;

use http::Extensions;

/// The names that the caller of a connection has proven by its certificate. Stands in the extensions
/// of each request of such a connection. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peer(Option<Arc<[Box<str>]>>);

static NOBODY: Peer = Peer(None);

impl Peer {
    /// A caller that has proven these names: SPIFFE IDs and DNS names.
    pub fn named(names: impl IntoIterator<Item = Box<str>>) -> Peer {
        Peer(Some(names.into_iter().collect()))
    }

    /// A caller that has proven nothing.
    pub fn nobody() -> &'static Peer {
        &NOBODY
    }

    /// The caller that has sent a request.
    pub fn of(extensions: &Extensions) -> &Peer {
        extensions.get().unwrap_or(&NOBODY)
    }

    /// Whether the caller has shown a certificate.
    pub(super) fn has_certificate(&self) -> bool {
        self.0.is_some()
    }

    /// What it has proven, in the order of the certificate.
    pub fn names(&self) -> &[Box<str>] {
        self.0.as_deref().unwrap_or_default()
    }
}
