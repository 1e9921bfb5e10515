//! Whose balance it is, as bytes.
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use smallvec::SmallVec;

use super::{Holder, Scope};

/// A key as it is kept: most names take no allocation of their own.
pub(super) type Key = SmallVec<[u8; 16]>;

/// Room for the longest names that the border lets in. Longer ones would cost an allocation.
const KEY_BYTES_ON_STACK: usize = 400;

/// Hands the key of a balance to `read`, without an allocation.
///
/// The length comes first in a joined key: a separator could stand in a name, and then two pairs
/// would share a balance.
pub(super) fn with<R>(
    scope: Scope,
    tenant: &str,
    operation: &str,
    read: impl FnOnce(&[u8]) -> R,
) -> R {
    match scope {
        Scope::Global => read(&[]),
        Scope::Tenant => read(tenant.as_bytes()),
        Scope::Operation => read(operation.as_bytes()),
        Scope::TenantOperation => {
            let mut key = SmallVec::<[u8; KEY_BYTES_ON_STACK]>::new();
            key.extend_from_slice(&tenant.len().to_be_bytes());
            key.extend_from_slice(tenant.as_bytes());
            key.extend_from_slice(operation.as_bytes());
            read(&key)
        }
    }
}

/// Names the pool that a balance is shared by. No two balances have the same, and nothing in a
/// name of a caller can stand for a separator.
pub(super) fn pool(
    model: &str,
    scope: Scope,
    budget: &str,
    holder: &Holder<'_>,
    is_overflow: bool,
) -> Box<str> {
    let encoded = |name| utf8_percent_encode(name, NON_ALPHANUMERIC);
    let (tenant, operation) = (encoded(holder.tenant), encoded(holder.operation));
    let pool = if is_overflow {
        format!("{model}:{}:{budget}:~overflow", scope.name())
    } else {
        match scope {
            Scope::Global => format!("{model}:global:{budget}"),
            Scope::Tenant => format!("{model}:tenant:{budget}:{tenant}"),
            Scope::Operation => format!("{model}:operation:{budget}:{operation}"),
            Scope::TenantOperation => {
                format!("{model}:tenant_operation:{budget}:{tenant}:{operation}")
            }
        }
    };
    pool.into()
}

/// The names that a key is made of. Empty where the scope has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Names<'k> {
    pub(super) tenant: &'k str,
    pub(super) operation: &'k str,
}

/// Reads a key that [`with`] made for the same scope.
pub(super) fn names(scope: Scope, key: &[u8]) -> Names<'_> {
    let (tenant, operation): (&[u8], &[u8]) = match scope {
        Scope::Global => (&[], &[]),
        Scope::Tenant => (key, &[]),
        Scope::Operation => (&[], key),
        Scope::TenantOperation => joined(key).unwrap_or_default(),
    };
    let text = |name| str::from_utf8(name).unwrap_or_default();
    Names { tenant: text(tenant), operation: text(operation) }
}

fn joined(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, names) = key.split_first_chunk()?;
    names.split_at_checked(usize::from_be_bytes(*length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for (scope, tenant, operation) in [
            (Scope::Global, "", ""),
            (Scope::Tenant, "a", ""),
            (Scope::Operation, "", "x"),
            (Scope::TenantOperation, "a", "x"),
        ] {
            let key = key(scope, "a", "x");
            assert_eq!(names(scope, &key), Names { tenant, operation }, "{scope:?}");
        }
    }

    fn key(scope: Scope, tenant: &str, operation: &str) -> Vec<u8> {
        with(scope, tenant, operation, <[u8]>::to_vec)
    }

    #[test]
    fn a_scope_looks_at_its_own_names_only() {
        let same = |scope, one: (&str, &str), other: (&str, &str)| {
            key(scope, one.0, one.1) == key(scope, other.0, other.1)
        };
        for (scope, by_tenant, by_operation) in [
            (Scope::Global, true, true),
            (Scope::Tenant, false, true),
            (Scope::Operation, true, false),
            (Scope::TenantOperation, false, false),
        ] {
            assert_eq!(same(scope, ("a", "x"), ("b", "x")), by_tenant, "{scope:?}");
            assert_eq!(same(scope, ("a", "x"), ("a", "y")), by_operation, "{scope:?}");
        }
    }

    #[test]
    fn b54_no_two_pairs_share_a_key() {
        let names = ["", "a", "b", "a:b", "b:c", "c", "a/b", "b/c", "{x}", "*", "A", "\u{e9}"];
        let composed_otherwise = "e\u{301}";
        let long = "a".repeat(1_000);
        let names: Vec<&str> =
            names.into_iter().chain([composed_otherwise, "a\nb", "a\0", "\0", &long]).collect();
        let mut seen = std::collections::HashSet::new();
        for tenant in &names {
            for operation in &names {
                let new = seen.insert(key(Scope::TenantOperation, tenant, operation));
                assert!(new, "{tenant:?} {operation:?}");
            }
        }
    }
}
