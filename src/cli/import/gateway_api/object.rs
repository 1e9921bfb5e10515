//! The objects of Kubernetes in a file, and the backends that they name.
use super::super::at::{At, Fields};
use super::super::reader::Reader;
use crate::cli::node::{Node, Value};

const GROUP: &str = "gateway.networking.k8s.io";
const EXPERIMENTS: &str = "gateway.networking.x-k8s.io";
/// The longest name of an object.
const NAME_BYTES_MAX: usize = 253;

/// An object that says something of retries.
pub(super) struct Object<'a> {
    pub(super) kind: Kind,
    /// Empty where the file leaves it to whoever applies it.
    pub(super) namespace: &'a str,
    pub(super) spec: At<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Route(Route),
    TrafficPolicy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Http,
    Grpc,
}

/// Where requests go: mostly a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Backend<'a> {
    pub(super) namespace: &'a str,
    pub(super) group: &'a str,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
}

/// The objects of Gateway API, one a document or many in a `List`. All others are left out.
pub(super) fn objects<'a>(reader: &mut Reader, documents: &'a [Node]) -> Vec<Object<'a>> {
    let mut found = Vec::new();
    for (place, document) in documents.iter().enumerate() {
        let at = named(document, format!("documents[{place}]"));
        if matches!(document.value, Value::Null) {
            // Nothing stands between two `---`.
        } else if text(document, "kind").is_some_and(|kind| kind.ends_with("List")) {
            let mut list = reader.fields(at);
            list.take("apiVersion");
            list.take("kind");
            let items = list.need(reader, "items").map(|at| reader.items(&at)).unwrap_or_default();
            reader.leave_rest(list, |_| "no matter of retries");
            let items = items.into_iter().map(|at| named(at.node, at.path));
            found.extend(items.filter_map(|at| object(reader, at)));
        } else {
            found.extend(object(reader, at));
        }
    }
    found
}

/// Called by its kind and name, as by kubectl, if both are plain words.
fn named(node: &Node, otherwise: String) -> At<'_> {
    let is_plain = |text: &&str| {
        (1..=NAME_BYTES_MAX).contains(&text.len())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))
    };
    let kind = text(node, "kind").filter(is_plain);
    let name = get(node, "metadata").and_then(|metadata| text(metadata, "name")).filter(is_plain);
    let path = kind.zip(name).map(|(kind, name)| format!("{kind}/{name}"));
    At { node, path: path.unwrap_or(otherwise) }
}

fn object<'a>(reader: &mut Reader, at: At<'a>) -> Option<Object<'a>> {
    let mut fields = reader.fields(at.clone());
    if !matches!(at.node.value, Value::Map(_)) {
        return None;
    }
    let version = word(reader, &mut fields, "apiVersion", None);
    let kind = word(reader, &mut fields, "kind", None);
    let group = version?.split_once('/').map_or("", |(group, _)| group);
    let kind = match (group, kind?) {
        (GROUP, "HTTPRoute") => Kind::Route(Route::Http),
        (GROUP, "GRPCRoute") => Kind::Route(Route::Grpc),
        (GROUP | EXPERIMENTS, "BackendTrafficPolicy") | (EXPERIMENTS, "XBackendTrafficPolicy") => {
            Kind::TrafficPolicy
        }
        _ => {
            reader.leave(&at, "no route and no retry budget of Gateway API");
            return None;
        }
    };
    let namespace = fields.take("metadata").map_or(Some(""), |at| namespace(reader, at));
    let spec = fields.need(reader, "spec");
    reader.leave_rest(fields, |key| match key {
        "status" => "what gateways made of it is no matter of a policy",
        _ => "retryd does not know this key",
    });
    Some(Object { kind, namespace: namespace?, spec: spec? })
}

fn namespace<'a>(reader: &mut Reader, at: At<'a>) -> Option<&'a str> {
    let mut fields = reader.fields(at);
    word(reader, &mut fields, "name", Some(""));
    let namespace = word(reader, &mut fields, "namespace", Some(""));
    reader.leave_rest(fields, |key| match key {
        "annotations" => "gateways may read more of them than Gateway API has: retryd reads none",
        _ => "no matter of retries",
    });
    namespace
}

impl<'a> Backend<'a> {
    /// What a `backendRefs` of a route in `namespace` names.
    pub(super) fn of_route(
        reader: &mut Reader,
        fields: &mut Fields<'a>,
        namespace: &'a str,
    ) -> Option<Backend<'a>> {
        let group = word(reader, fields, "group", Some(""));
        let kind = word(reader, fields, "kind", Some("Service"));
        let name = word(reader, fields, "name", None);
        let namespace = word(reader, fields, "namespace", Some(namespace));
        Some(Backend { namespace: namespace?, group: group?, kind: kind?, name: name? })
    }

    /// What a `targetRefs` of a policy in `namespace` names.
    pub(super) fn of_policy(
        reader: &mut Reader,
        fields: &mut Fields<'a>,
        namespace: &'a str,
    ) -> Option<Backend<'a>> {
        let group = word(reader, fields, "group", None);
        let kind = word(reader, fields, "kind", None);
        let name = word(reader, fields, "name", None);
        Some(Backend { namespace, group: group?, kind: kind?, name: name? })
    }
}

/// The text of a key. `None` where it is wrong, or absent and nothing stands in.
pub(super) fn word<'a>(
    reader: &mut Reader,
    fields: &mut Fields<'a>,
    key: &str,
    absent: Option<&'a str>,
) -> Option<&'a str> {
    match absent {
        Some(absent) => fields.take(key).map_or(Some(absent), |at| reader.text(&at)),
        None => fields.need(reader, key).and_then(|at| reader.text(&at)),
    }
}

fn get<'a>(node: &'a Node, key: &str) -> Option<&'a Node> {
    match &node.value {
        Value::Map(entries) => entries.iter().find(|it| it.key == key).map(|it| &it.node),
        _ => None,
    }
}

fn text<'a>(node: &'a Node, key: &str) -> Option<&'a str> {
    match &get(node, key)?.value {
        Value::Text(text) => Some(text),
        _ => None,
    }
}
