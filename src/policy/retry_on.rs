//! Checks the lists of failures of a policy: what may be repeated, and what proves a refusal.
use super::{
    decimal, file,
    read::Reader,
    rejected::quoted,
    yaml::{Scalar, Value, place},
};
use crate::engine::{
    Categories, Category, Failure, GrpcCode, GrpcCodes, HttpStatus, HttpStatuses, Judged, RetryOn,
    Rules, Statuses,
};

/// What may be repeated. A list that is absent keeps its default.
pub(super) fn retry_on(reader: &mut Reader<'_>, written: &file::RetryOn) -> RetryOn {
    let default = Rules::default().retry_on;
    RetryOn {
        statuses: Statuses {
            http: written.http.as_ref().map_or(default.statuses.http, |listed| {
                let mut transient = HttpStatuses::default();
                for item in listed {
                    let status = http(reader, item);
                    if let Some(status) = status.filter(|s| heals(reader, item, Failure::Http(*s)))
                    {
                        transient = transient.with(status);
                    }
                }
                transient
            }),
            grpc: written.grpc.as_ref().map_or(default.statuses.grpc, |listed| {
                let mut transient = GrpcCodes::default();
                for item in listed {
                    let code = grpc(reader, item);
                    if let Some(code) = code.filter(|c| heals(reader, item, Failure::Grpc(*c))) {
                        transient = transient.with(code);
                    }
                }
                transient
            }),
        },
        categories: written.failures.as_ref().map_or(default.categories, |listed| {
            let mut transient = Categories::default();
            for item in listed {
                let category = category(reader, item);
                if let Some(it) = category.filter(|c| heals(reader, item, Failure::Category(*c))) {
                    transient = transient.with(it);
                }
            }
            transient
        }),
    }
}

/// What proves that the server did no work. A list that is absent keeps its default.
pub(super) fn refusal_statuses(
    reader: &mut Reader<'_>,
    written: &file::RefusalStatuses,
) -> Statuses {
    let default = Rules::default().refusal_statuses;
    Statuses {
        http: written.http.as_ref().map_or(default.http, |listed| {
            let statuses = listed.iter().filter_map(|item| http(reader, item));
            statuses.fold(HttpStatuses::default(), HttpStatuses::with)
        }),
        grpc: written.grpc.as_ref().map_or(default.grpc, |listed| {
            let codes = listed.iter().filter_map(|item| grpc(reader, item));
            codes.fold(GrpcCodes::default(), GrpcCodes::with)
        }),
    }
}

fn http(reader: &mut Reader<'_>, item: &Scalar) -> Option<HttpStatus> {
    let number = reader.literal(item).and_then(decimal::whole);
    let status = number.and_then(|number| u16::try_from(number).ok()).and_then(HttpStatus::new);
    if status.is_none() {
        let (min, max) = (HttpStatus::MIN, HttpStatus::MAX);
        let shown = reader.shown(item);
        let message = format!("an HTTP status is a number from {min} to {max}, not {shown}");
        reader.refuse(place(item), message);
    }
    status
}

fn grpc(reader: &mut Reader<'_>, item: &Scalar) -> Option<GrpcCode> {
    let is_meant = |code: &GrpcCode| match &item.value {
        Value::Text(name) => code.name() == name,
        Value::Literal => {
            reader.literal(item).and_then(decimal::whole) == Some(u64::from(*code as u8))
        }
    };
    let code = GrpcCode::ALL.into_iter().find(is_meant);
    if code.is_none() {
        let near = match &item.value {
            Value::Text(name) => reader.guess(name, &GrpcCode::ALL.map(GrpcCode::name)),
            Value::Literal => String::new(),
        };
        let shown = reader.shown(item);
        let message = format!(
            "a gRPC status is a name such as UNAVAILABLE or a number from 1 to 16 (OK is no \
             failure), not {shown}{near}"
        );
        reader.refuse(place(item), message);
    }
    code
}

fn category(reader: &mut Reader<'_>, item: &Scalar) -> Option<Category> {
    const PREFIX: &str = "FAILURE_CATEGORY_";
    let name = reader.text("failures", item)?;
    let category = Category::ALL.into_iter().find(|category| category.name() == name);
    if category.is_none() {
        let message = match name.strip_prefix(PREFIX) {
            Some(rest) => format!("write the category without its prefix: {}", quoted(rest)),
            None if name == "STATUS" || name == "UNSPECIFIED" => {
                format!("`{name}` is judged by its status: list that under http or grpc")
            }
            None => format!(
                "no failure category is called {}{}",
                quoted(name),
                reader.guess(name, &Category::ALL.map(Category::name))
            ),
        };
        reader.refuse(place(item), message);
    }
    category
}

/// Whether a repeat can help. Where it cannot, no policy may ask for one.
fn heals(reader: &mut Reader<'_>, item: &Scalar, failure: Failure) -> bool {
    let permanent = Judged::by(&Rules::default(), failure).is_permanent();
    if permanent {
        let name = match failure {
            Failure::Http(status) => status.get().to_string(),
            Failure::Grpc(code) => code.name().to_owned(),
            Failure::Category(category) => category.name().to_owned(),
        };
        let message = format!("`{name}` is always permanent: `retry_on` cannot list it");
        reader.refuse(place(item), message);
    }
    !permanent
}
