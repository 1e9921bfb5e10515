//! What the `OTEL_*` variables say, in the words of the OpenTelemetry specification.
//!
//! Read here are those that decide whether and what is traced. Those that say how spans are sent
//! (headers, time-outs, certificates, batches) are read by the libraries.
use opentelemetry_sdk::trace::Sampler;

/// Traces that are wanted.
#[derive(Clone, Debug)]
pub struct Settings {
    pub(super) endpoint: String,
    pub(super) sampler: Sampler,
    /// Whether a trace that its caller does not sample is none here either.
    pub(super) follows_parent: bool,
    /// Whether the environment names the service.
    pub(super) is_named: bool,
    /// Spans that may wait for their export.
    pub(super) waiting_max: usize,
}

/// A variable with a value that is none of its own.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{variable}` is `{value}`: write {instead}")]
pub struct BadVariable {
    variable: &'static str,
    value: String,
    instead: &'static str,
}

const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const SAMPLER_ARG: &str = "OTEL_TRACES_SAMPLER_ARG";
/// As the specification has it.
const WAITING_MAX: usize = 2048;

impl Settings {
    /// Reads the variables by `variable`. `None`: nothing is to be traced.
    ///
    /// # Errors
    ///
    /// Names the variable that makes no sense.
    pub fn read(
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Settings>, BadVariable> {
        // An empty one, as a template may leave it, is none.
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_off = variable("OTEL_SDK_DISABLED")
            .is_some_and(|it| it.eq_ignore_ascii_case("true"))
            || variable("OTEL_TRACES_EXPORTER").is_some_and(|it| it == "none");
        let endpoint = variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let Some(endpoint) = endpoint.filter(|_| !is_off) else { return Ok(None) };

        one_of(&variable, "OTEL_TRACES_EXPORTER", &["otlp"], "`otlp` or `none`")?;
        for name in ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"] {
            one_of(&variable, name, &["grpc"], "`grpc`, usually to port 4317")?;
        }
        let (sampler, follows_parent) = sampler(&variable)?;
        let waiting_max = variable("OTEL_BSP_MAX_QUEUE_SIZE").and_then(|size| size.parse().ok());
        let is_named = variable("OTEL_SERVICE_NAME").is_some()
            || variable("OTEL_RESOURCE_ATTRIBUTES").is_some_and(|all| {
                all.split(',').any(|one| one.trim_start().starts_with("service.name="))
            });
        let waiting_max = waiting_max.unwrap_or(WAITING_MAX);
        Ok(Some(Settings { endpoint, sampler, follows_parent, is_named, waiting_max }))
    }
}

fn one_of(
    variable: &impl Fn(&str) -> Option<String>,
    name: &'static str,
    known: &[&str],
    instead: &'static str,
) -> Result<(), BadVariable> {
    match variable(name) {
        Some(value) if !known.contains(&&*value) => {
            Err(BadVariable { variable: name, value, instead })
        }
        Some(_) | None => Ok(()),
    }
}

/// The sampler, and whether it follows its caller's.
fn sampler(variable: &impl Fn(&str) -> Option<String>) -> Result<(Sampler, bool), BadVariable> {
    let name = variable(SAMPLER);
    let name = name.as_deref().unwrap_or("parentbased_always_on");
    let root = name.strip_prefix("parentbased_");
    let sampler = match root.unwrap_or(name) {
        "always_on" => Sampler::AlwaysOn,
        "always_off" => Sampler::AlwaysOff,
        "traceidratio" => Sampler::TraceIdRatioBased(ratio(variable(SAMPLER_ARG))?),
        _ => {
            return Err(BadVariable {
                variable: SAMPLER,
                value: name.to_owned(),
                instead: "`always_on`, `always_off`, `traceidratio`, or one of them behind `parentbased_`",
            });
        }
    };
    Ok(match root {
        Some(_) => (Sampler::ParentBased(Box::new(sampler)), true),
        None => (sampler, false),
    })
}

fn ratio(argument: Option<String>) -> Result<f64, BadVariable> {
    let Some(value) = argument else { return Ok(1.0) };
    match value.parse() {
        Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(ratio),
        Ok(_) | Err(_) => {
            Err(BadVariable { variable: SAMPLER_ARG, value, instead: "a number from 0 to 1" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://here:4317");

    fn read(variables: &[(&str, &str)]) -> Result<Option<Settings>, BadVariable> {
        let value = |(_, value): &(&str, &str)| (*value).to_owned();
        Settings::read(|name| variables.iter().find(|(has, _)| *has == name).map(value))
    }

    #[test]
    fn without_an_endpoint_or_switched_off_there_are_no_traces() {
        for variables in [
            &[][..],
            &[("OTEL_SERVICE_NAME", "a")],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", "")],
            &[HERE, ("OTEL_SDK_DISABLED", "true")],
            &[HERE, ("OTEL_SDK_DISABLED", "TRUE")],
            &[HERE, ("OTEL_TRACES_EXPORTER", "none")],
        ] {
            assert!(read(variables).unwrap().is_none(), "{variables:?}");
        }
        let there = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://there:4317");
        assert_eq!(read(&[HERE, there]).unwrap().unwrap().endpoint, "http://there:4317");
        let empty = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "");
        assert_eq!(read(&[HERE, empty]).unwrap().unwrap().endpoint, "http://here:4317");
        assert!(read(&[HERE, ("OTEL_SDK_DISABLED", "false")]).unwrap().is_some());
    }

    #[test]
    fn samplers() {
        for (name, argument, expected, follows) in [
            ("", "", "ParentBased(AlwaysOn)", true),
            ("parentbased_always_on", "", "ParentBased(AlwaysOn)", true),
            ("parentbased_always_off", "", "ParentBased(AlwaysOff)", true),
            ("parentbased_traceidratio", "0.25", "ParentBased(TraceIdRatioBased(0.25))", true),
            ("traceidratio", "", "TraceIdRatioBased(1.0)", false),
            ("always_on", "0.5", "AlwaysOn", false),
            ("always_off", "", "AlwaysOff", false),
        ] {
            let settings = read(&[HERE, (SAMPLER, name), (SAMPLER_ARG, argument)]);
            let settings = settings.unwrap().unwrap();
            assert_eq!(format!("{:?}", settings.sampler), expected, "{name}");
            assert_eq!(settings.follows_parent, follows, "{name}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (variable, value) in [
            (SAMPLER, "sometimes"),
            (SAMPLER, "jaeger_remote"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_TRACES_EXPORTER", "zipkin"),
        ] {
            let error = read(&[HERE, (variable, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{variable}` is `{value}`: write ")), "{error}");
        }
        for value in ["2", "-0.1", "half", "NaN"] {
            let ratio = (SAMPLER, "traceidratio");
            let error = read(&[HERE, ratio, (SAMPLER_ARG, value)]).unwrap_err();
            assert_eq!(error.variable, SAMPLER_ARG, "{value}");
        }
    }

    #[test]
    fn who_names_the_service() {
        for (variable, value, named) in [
            ("OTEL_SERVICE_NAME", "shop", true),
            ("OTEL_RESOURCE_ATTRIBUTES", "a=b, service.name=shop", true),
            ("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=shop", false),
        ] {
            let settings = read(&[HERE, (variable, value)]).unwrap().unwrap();
            assert_eq!(settings.is_named, named, "{value}");
        }
    }
}
