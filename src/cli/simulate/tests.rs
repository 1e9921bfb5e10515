//! The table and the page of a report that is small enough to know by heart.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
mod sample;

use std::fs;

use super::{charts, figures::MEASURES, page::page, pictures, table};
use sample::{EVIL, report};

#[test]
fn every_figure_stands_in_the_table() {
    let mut out = Vec::new();
    table::write(&mut out, &report()).unwrap();
    let rows: Vec<Vec<String>> = String::from_utf8(out)
        .unwrap()
        .lines()
        .map(|line| {
            line.split("  ")
                .map(|cell| cell.trim().to_owned())
                .filter(|cell| !cell.is_empty())
                .collect()
        })
        .collect();
    let short = MEASURES.map(|measure| measure.short);
    assert_eq!(rows[0], short);
    // In the three seconds after the outage 5, 8 and 8 calls are answered well, or 0, 2 and 1.
    assert_eq!(rows[2], ["No retries", "80.0 %", "1.00", "1.5 s", "none to grant", "0", "7/s"]);
    assert_eq!(rows[3], ["1.0 to 2.0", "in all 2"]);
    assert_eq!(rows[4], [EVIL, "30.5 %", "2.45", "stays down", "5.05", "3", "1/s"]);
    assert_eq!(rows[5], ["30.0 to 31.0", "2.40 to 2.50", "in all 2", "5.00 to 5.10", "2 to 4"]);
}

#[test]
fn every_figure_stands_on_the_page() {
    let report = report();
    let page = page(&report).unwrap();
    for played in &report.contestants {
        let (_, row) = page
            .split_once(&format!("<tr><th scope=\"row\">{}</th>", escaped(&played.title)))
            .unwrap();
        let (row, _) = row.split_once("</tr>").unwrap();
        for measure in &MEASURES {
            let figure = measure.figure(played, &report);
            assert!(row.contains(&format!(">{}<", figure.mean)), "{}: {row}", measure.name);
            let spread = figure.spread.unwrap_or_default();
            assert!(row.contains(&spread), "{}: {row}", measure.name);
        }
    }
}

/// Also what a scenario file or a contestant says is text.
#[test]
fn the_page_loads_nothing_and_runs_nothing() {
    let page = page(&report()).unwrap();
    for word in ["<script", "javascript:", " src=", "<link", "@import", "url(", "onload", "xmlns"] {
        assert!(!page.contains(word), "{word}");
    }
    // Elsewhere is only what a reader may follow.
    let link = r#"(<a href="https://example.org/a&#38;b">https://example.org/a&#38;b</a>)."#;
    assert_eq!(page.matches(link).count(), 2);
    assert_eq!(page.replace(link, "").matches("://").count(), 0);
    assert!(page.contains(&escaped(EVIL)));
    assert!(page.contains("<pre>&#60;policy&#62;</pre>"));
}

#[test]
fn every_chart_says_what_it_shows() {
    let report = report();
    let page = page(&report).unwrap();
    let labels: Vec<&str> = page
        .split("<svg ")
        .skip(1)
        .map(|chart| {
            chart.split_once(r#"role="img" aria-label=""#).unwrap().1.split('"').next().unwrap()
        })
        .collect();
    // Two panels a contestant, two measures over the seeds, the grid.
    assert_eq!(labels.len(), 7);
    assert_eq!(
        labels[0],
        "No retries, attempts a second over time: 10 in the outage; 10 at the end, 7 of them answered well"
    );
    assert_eq!(
        labels[3],
        format!(
            "{}, calls that succeed over time: 50 % in the outage, 10 % at the end",
            escaped(EVIL)
        )
    );
    assert!(labels[4].contains("No retries 1.00; "), "{}", labels[4]);
    assert!(labels[5].ends_with("stays down (in all 2)"), "{}", labels[5]);
    assert!(labels[6].contains("Calls a second 10: No retries 3 s, "), "{}", labels[6]);
}

#[test]
fn a_panel_draws_what_happened() {
    let report = report();
    let panel = charts::OverTime::load(&report).panels().unwrap()[1].file().unwrap();
    let attribute = |element: &str, name: &str| {
        element.split_once(&format!(" {name}=\"")).unwrap().1.split('"').next().unwrap().to_owned()
    };
    let element = |name: &str, ink: &str| {
        panel.lines().rfind(|line| line.starts_with(name) && line.contains(ink)).unwrap()
    };
    // From left to right, how high; y goes down.
    let attempts: Vec<(i32, i32)> = attribute(element("<polyline", "#C23B22"), "points")
        .split_whitespace()
        .map(|point| point.split_once(',').unwrap())
        .map(|(x, y)| (x.parse().unwrap(), y.parse().unwrap()))
        .collect();
    // The last second has no more calls, and is no part of the picture.
    assert_eq!(attempts.len(), 6);
    let rises: Vec<i32> = attempts.windows(2).map(|pair| pair[0].1 - pair[1].1).collect();
    let once = rises[1];
    assert!(0 < once, "{rises:?}");
    // 10, 10, 20, 30, 30, 30.
    assert_eq!(rises[0], 0);
    assert!((rises[2] - once).abs() <= 1, "{rises:?}");
    assert_eq!(&rises[3..], [0, 0]);

    // The outage is as long as the second in which it is.
    let outage = element("<rect", "#F3DDC8");
    let number = |name: &str| attribute(outage, name).parse::<i32>().unwrap();
    let second = attempts[1].0 - attempts[0].0;
    assert!((number("width") - second).abs() <= 1, "{outage}");
    assert!((number("x") - (attempts[2].0 - second / 2)).abs() <= 1, "{outage}");
}

#[test]
fn pictures_stand_alone() {
    let folder = tempfile::tempdir().unwrap();
    let pictures_in = folder.path().join("new");
    pictures::write(&pictures_in, &report()).unwrap();
    // As plotters writes it.
    let evil = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &apos;so&apos;";
    for name in ["load", "success", "recovery", "amplification", "grid"] {
        let svg = fs::read_to_string(pictures_in.join(name).with_extension("svg")).unwrap();
        assert!(svg.starts_with(r#"<svg xmlns="http://www.w3.org/2000/svg" width=""#), "{svg}");
        assert!(svg.contains("<title>") && svg.contains(charts::STYLE), "{svg}");
        assert!(svg.contains(evil) && !svg.contains("<script>"), "{svg}");
    }
}

/// As askama writes it.
fn escaped(text: &str) -> String {
    text.replace('&', "&#38;")
        .replace('<', "&#60;")
        .replace('>', "&#62;")
        .replace('"', "&#34;")
        .replace('\'', "&#39;")
}
