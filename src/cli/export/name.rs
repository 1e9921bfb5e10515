//! What a service config can name.
use crate::policy::Pattern;

/// One method, one service or everything. Ordered so that the more specific one comes first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Name {
    Method { service: String, method: String },
    Service(String),
    Everything,
}

impl Name {
    /// What an operation pattern names, if it is one of the three.
    pub(super) fn parse(pattern: &str) -> Result<Name, String> {
        if pattern.bytes().all(|byte| byte == b'*') && !pattern.is_empty() {
            return Ok(Name::Everything);
        }
        match pattern.split_once('/') {
            Some((service, "*")) if is_service(service) => Ok(Name::Service(service.to_owned())),
            Some((service, method)) if is_service(service) && is_word(method) => {
                Ok(Name::Method { service: service.to_owned(), method: method.to_owned() })
            }
            _ => Err("write `pkg.Service/Method`, `pkg.Service/*` or `*`".to_owned()),
        }
    }

    pub(super) fn pattern(&self) -> Pattern {
        let pattern = match self {
            Name::Method { service, method } => Pattern::new(&format!("{service}/{method}")),
            Name::Service(service) => Pattern::new(&format!("{service}/*")),
            Name::Everything => None,
        };
        pattern.unwrap_or_else(Pattern::everything)
    }

    /// Whether every operation of `other` is one of this.
    pub(super) fn covers(&self, other: &Name) -> bool {
        self.pattern().covers(&other.pattern())
    }
}

fn is_service(text: &str) -> bool {
    text.split('.').all(is_word)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_a_service_config_can_name() {
        let service = || "pkg.v1.Svc".to_owned();
        let cases = [
            ("*", Some(Name::Everything)),
            ("**", Some(Name::Everything)),
            ("pkg.v1.Svc/*", Some(Name::Service(service()))),
            ("pkg.v1.Svc/Do", Some(Name::Method { service: service(), method: "Do".to_owned() })),
            ("", None),
            ("pkg.v1.Svc", None),
            ("pkg.v1.*/Do", None),
            ("pkg.v1.Svc/Get*", None),
            ("*/Do", None),
            ("/pkg.v1.Svc/Do", None),
            ("GET /orders", None),
            ("pkg..Svc/Do", None),
        ];
        for (pattern, expected) in cases {
            assert_eq!(Name::parse(pattern).ok(), expected, "{pattern}");
        }
    }
}
