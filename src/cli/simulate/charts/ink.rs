//! The colours of the charts. Each is drawn as it looks on a light page, and `charts.css` gives it another one on a dark
//! page, by this very value.
use plotters::style::RGBColor;

/// Words and numbers.
pub(super) const TEXT: RGBColor = RGBColor(0x3d, 0x42, 0x48);
/// Lines that help to read.
pub(super) const RULE: RGBColor = RGBColor(0xd3, 0xd6, 0xd9);
/// The time in which the cause lasts.
pub(super) const CAUSE: RGBColor = RGBColor(0xf3, 0xdd, 0xc8);
/// What the callers want: calls that arrive.
pub(super) const WANTED: RGBColor = RGBColor(0x75, 0x7b, 0x82);
/// Attempts that reach the service.
pub(super) const LOAD: RGBColor = RGBColor(0xc2, 0x3b, 0x22);
/// Calls that end well.
pub(super) const GOOD: RGBColor = RGBColor(0x1a, 0x73, 0x9b);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::simulate::charts::STYLE;

    #[test]
    fn each_ink_has_a_light_and_a_dark_colour() {
        let (light, dark) = STYLE.split_once("@media (prefers-color-scheme: dark)").unwrap();
        assert!(light.contains("--paper: #") && dark.contains("--paper: #"));
        for (name, ink) in [
            ("letters", TEXT),
            ("rule", RULE),
            ("cause", CAUSE),
            ("wanted", WANTED),
            ("load", LOAD),
            ("good-line", GOOD),
        ] {
            let RGBColor(red, green, blue) = ink;
            let value = format!("#{red:02x}{green:02x}{blue:02x}");
            assert!(light.contains(&format!("--{name}: {value};")), "{name} is drawn otherwise");
            assert!(dark.contains(&format!("--{name}: #")), "{name} has no dark colour");
            for kind in ["fill", "stroke"] {
                let value = value.to_uppercase();
                let rule = format!("[{kind}=\"{value}\"] {{ {kind}: var(--{name}); }}");
                assert!(dark.contains(&rule), "{rule}");
            }
        }
    }
}
