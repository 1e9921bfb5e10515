//! What stands in a certificate: names and dates. Whether it can be trusted, rustls has said before.
use x509_parser::{
    certificate::X509Certificate,
    extensions::{GeneralName, ParsedExtension},
    prelude::FromDer as _,
};

/// Names that are taken from one certificate. Each question is held against each of them.
const NAMES_MAX: usize = 16;

/// When a certificate is good, in seconds since 1970.
#[derive(Clone, Copy, Debug)]
pub(super) struct Validity {
    pub(super) not_before_s: i64,
    pub(super) not_after_s: i64,
}

pub(super) fn validity(der: &[u8]) -> Option<Validity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some(Validity {
        not_before_s: validity.not_before.timestamp(),
        not_after_s: validity.not_after.timestamp(),
    })
}

/// The SPIFFE IDs and DNS names among the subject's alternative names. The common name counts for
/// nothing: authorities let people write there what they like.
pub(super) fn names(der: &[u8]) -> Vec<Box<str>> {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return Vec::new() };
    let alternatives = certificate.extensions().iter().find_map(|it| match it.parsed_extension() {
        ParsedExtension::SubjectAlternativeName(alternatives) => Some(alternatives),
        _ => None,
    });
    let written = alternatives.into_iter().flat_map(|it| &it.general_names);
    written.filter_map(name).take(NAMES_MAX).map(Box::from).collect()
}

fn name<'a>(written: &GeneralName<'a>) -> Option<&'a str> {
    match written {
        GeneralName::URI(uri) if uri.starts_with("spiffe://") => Some(uri),
        // A name that looks like an ID must not be taken for one.
        GeneralName::DNSName(name) if !name.contains([':', '/']) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_name_is_not_taken_for_another() {
        let id = "spiffe://prod/ns/shop";
        for (written, expected) in [
            (GeneralName::URI(id), Some(id)),
            (GeneralName::URI("https://prod/ns/shop"), None),
            (GeneralName::URI("shop.example"), None),
            (GeneralName::DNSName("shop.example"), Some("shop.example")),
            (GeneralName::DNSName(id), None),
            (GeneralName::RFC822Name("shop.example"), None),
            (GeneralName::IPAddress(&[127, 0, 0, 1]), None),
        ] {
            assert_eq!(name(&written), expected, "{written:?}");
        }
    }

    #[test]
    fn what_is_no_certificate_has_no_names() {
        assert_eq!(names(b"no certificate"), Vec::<Box<str>>::new());
        assert!(validity(b"").is_none());
    }
}
