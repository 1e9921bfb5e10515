//! Charts of what was played, as SVG that reads on a light and on a dark page.
mod grid;
mod ink;
mod over_time;
mod spread;

use std::io;

use askama::Template;
use plotters::{
    coord::Shift,
    drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _},
    element::Rectangle,
    prelude::SVGBackend,
    style::{
        Color as _, FontDesc, FontFamily, FontStyle, RGBColor, TextStyle,
        text_anchor::{HPos, Pos, VPos},
    },
};

pub(super) use self::{grid::recoveries, over_time::OverTime, spread::spread};

/// The colours, for a page that has charts in it.
pub(super) const STYLE: &str = include_str!("charts/charts.css");

/// One chart. It is a part of a page; [`Chart::file`] makes it one that stands alone.
#[derive(Debug, Template)]
#[template(path = "chart.html")]
pub(super) struct Chart {
    width: u32,
    height: u32,
    /// What it shows, for who cannot see it.
    label: String,
    drawn: String,
}

/// A chart that is a file.
#[derive(Template)]
#[template(path = "chart.svg")]
struct File<'a> {
    chart: &'a Chart,
    style: &'static str,
}

/// The size of the text. Charts are shown at about half of their size.
const LETTERS: f64 = 25.0;

/// Where a chart, or one panel of it, is drawn.
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// It is drawn into memory, so nothing but a chart without extent goes wrong.
type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

impl Chart {
    fn draw(
        (width, height): (u32, u32),
        label: String,
        draw: impl FnOnce(&Area<'_>) -> Drawn,
    ) -> anyhow::Result<Chart> {
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        draw(&area)?;
        area.present()?;
        drop(area);
        // The outermost element is written anew, with a label.
        let inside = svg.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
        let drawn = inside.map(|(inside, _)| inside.to_owned()).unwrap_or_default();
        Ok(Chart { width, height, label, drawn })
    }

    /// The chart with its style and its own paper, for a document that shows it as a picture.
    pub(super) fn file(&self) -> anyhow::Result<String> {
        Ok(File { chart: self, style: STYLE }.render()?)
    }
}

/// Text in the size of all charts, except for titles. The font is the style sheet's.
fn text(side: HPos) -> TextStyle<'static> {
    let font = FontDesc::new(FontFamily::SansSerif, LETTERS, FontStyle::Normal);
    font.color(&ink::TEXT).pos(Pos::new(side, VPos::Center))
}

/// What each colour is, in one row.
fn legend(area: &Area<'_>, entries: &[(&str, RGBColor)]) -> Drawn {
    const LEFT: i32 = 78;
    const SWATCH: i32 = 26;
    /// Of a letter, on average. There is no font to ask.
    const LETTER: i32 = 10;
    let (_, height) = area.dim_in_pixel();
    let middle = i32::try_from(height / 2).unwrap_or_default();
    let mut left = LEFT;
    for (name, ink) in entries {
        let swatch = [(left, middle - SWATCH / 3), (left + SWATCH, middle + SWATCH / 3)];
        area.draw(&Rectangle::new(swatch, ink.filled()))?;
        left += SWATCH + 10;
        area.draw_text(name, &text(HPos::Left), (left, middle))?;
        left += LETTER * i32::try_from(name.chars().count()).unwrap_or_default() + 36;
    }
    Ok(())
}
