//! Who may ask for which tenants.
use super::{Pattern, Policies};

/// Which tenants a client certificate may speak for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// SPIFFE IDs or DNS names.
    pub identity: Pattern,
    /// The tenants.
    pub tenants: Box<[Pattern]>,
}

/// Why policies cannot be in force: nothing may look like a protection that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallersError {
    /// Callers show certificates, and the file does not say what for.
    #[error(
        "client certificates are asked for (`--tls-client-ca-file`), and the policy file has no \
         `callers` that says which tenants they are good for"
    )]
    NotWritten,
    /// The file says who may do what, and nobody proves who they are.
    #[error(
        "the policy file has `callers` or `operators`, and nobody proves who they are: serve with \
         `--tls-client-ca-file`, or take both out"
    )]
    NotProven,
}

impl Policies {
    /// Whether a caller that has proven these names may ask for `tenant`. Any one of them will do.
    /// For a balance that belongs to no tenant, `tenant` is empty.
    ///
    /// Without `callers` everybody may: [`Policies::fit`] sees to it that nobody proves a name then.
    pub fn allow(&self, names: &[Box<str>], tenant: &str) -> bool {
        let Some(callers) = &self.callers else { return true };
        callers.iter().any(|caller| {
            caller.tenants.iter().any(|pattern| pattern.matches(tenant))
                && fits(&caller.identity, names)
        }) || self.is_operator(names)
    }

    /// Whether a caller that has proven these names may do anything at all.
    pub fn know(&self, names: &[Box<str>]) -> bool {
        let Some(callers) = &self.callers else { return true };
        callers.iter().any(|caller| fits(&caller.identity, names)) || self.is_operator(names)
    }

    /// Whether these policies can be in force where callers have to show certificates, or need not.
    ///
    /// # Errors
    ///
    /// If the file and the certificates do not belong together.
    pub fn fit(&self, certificates: bool) -> Result<(), CallersError> {
        let is_written = self.callers.is_some();
        if certificates && !is_written {
            return Err(CallersError::NotWritten);
        }
        if !certificates && (is_written || !self.operators.is_empty()) {
            return Err(CallersError::NotProven);
        }
        Ok(())
    }

    /// The same for questions that no caller brings: everybody may ask for every tenant.
    #[must_use]
    pub fn open_to_all(self) -> Policies {
        Policies { callers: None, operators: [].into(), ..self }
    }

    fn is_operator(&self, names: &[Box<str>]) -> bool {
        self.operators.iter().any(|operator| fits(operator, names))
    }
}

fn fits(identity: &Pattern, names: &[Box<str>]) -> bool {
    names.iter().any(|name| identity.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "version: 1
policies: [{name: all}]
callers:
  - {identity: 'spiffe://prod/ns/shop/*', tenants: ['shop-*', 'till']}
  - {identity: batch.example, tenants: ['*']}
  - {identity: 'spiffe://prod/ns/bank/*', tenants: [bank]}
  - {identity: 'spiffe://prod/ns/new/*', tenants: []}
operators: ['spiffe://prod/ns/ops/*']
";

    fn policies(file: &str) -> Policies {
        Policies::parse("policy.yaml", file.as_bytes()).unwrap()
    }

    fn names(names: &[&str]) -> Vec<Box<str>> {
        names.iter().map(|name| (*name).into()).collect()
    }

    #[test]
    fn a_caller_may_ask_for_what_any_of_its_names_may() {
        let policies = policies(FILE);
        let (shop, bank) = ("spiffe://prod/ns/shop/web", "spiffe://prod/ns/bank/web");
        for (proven, tenant, expected) in [
            (&[shop][..], "shop-eu", true),
            (&[shop], "till", true),
            (&[shop], "tills", false),
            (&[shop], "bank", false),
            (&[shop], "", false),
            (&[shop, bank], "bank", true),
            (&[bank, shop], "shop-eu", true),
            (&["spiffe://prod/ns/shop"], "shop-eu", false),
            (&["x-spiffe://prod/ns/shop/web"], "shop-eu", false),
            // Who may ask for every tenant sees what belongs to none.
            (&["batch.example"], "", true),
            (&["batch.example"], "anything", true),
            (&["BATCH.example"], "anything", false),
            (&["spiffe://prod/ns/ops/oncall"], "anything", true),
            (&["spiffe://prod/ns/ops/oncall"], "", true),
            (&["spiffe://prod/ns/new/web"], "shop-eu", false),
            (&[], "shop-eu", false),
            (&[""], "shop-eu", false),
        ] {
            assert_eq!(policies.allow(&names(proven), tenant), expected, "{proven:?} {tenant}");
        }
        for (proven, expected) in [
            (&[shop][..], true),
            (&["spiffe://prod/ns/new/web"], true),
            (&["spiffe://prod/ns/ops/oncall"], true),
            (&["spiffe://prod/ns/other"], false),
            (&[], false),
        ] {
            assert_eq!(policies.know(&names(proven)), expected, "{proven:?}");
        }
        let open = policies.open_to_all();
        assert!(open.allow(&[], "anything") && open.know(&[]));
    }

    #[test]
    fn callers_and_certificates_belong_together() {
        let base = "version: 1\npolicies: [{name: all}]\n";
        let with = |more: &str| policies(&format!("{base}{more}"));
        let operators = "operators: [x]\n";
        for (policies, certificates, expected) in [
            (with(""), false, Ok(())),
            (with(""), true, Err(CallersError::NotWritten)),
            (with(operators), true, Err(CallersError::NotWritten)),
            (with(operators), false, Err(CallersError::NotProven)),
            (with("callers: []\n"), false, Err(CallersError::NotProven)),
            (with("callers: []\noperators: [x]\n"), true, Ok(())),
            (policies(FILE), true, Ok(())),
            (policies(FILE), false, Err(CallersError::NotProven)),
            (policies(FILE).open_to_all(), false, Ok(())),
        ] {
            assert_eq!(policies.fit(certificates), expected, "{policies:?}");
        }
    }
}
