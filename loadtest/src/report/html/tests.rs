//! The page is checked as what it is to a browser: elements, attributes, and no request.

use std::collections::BTreeSet;

use super::plot::{Ink, RAMP, TOGGLES};
use super::*;
use crate::report::{Distribution, Figure, Run, Series};
use crate::report::{sample, units};

/// An element's start: its name, and its attributes as they stand.
struct Element<'a> {
    name: &'a str,
    attributes: Vec<(&'a str, &'a str)>,
}

impl<'a> Element<'a> {
    fn attribute(&self, name: &str) -> Option<&'a str> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, value)| *value)
    }
}

/// All elements of a page; panics where one is not closed, or an attribute not quoted.
fn elements(page: &str) -> Vec<Element<'_>> {
    let mut open: Vec<&str> = Vec::new();
    let mut elements = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a document type");
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>'), "an escaped text: {:?}", &rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
            continue;
        }
        let element = element(tag);
        match element.name {
            "meta" | "input" => {}
            "style" => {
                let end = rest.find("</style>").expect("the style ends");
                rest = &rest[end + "</style>".len()..];
            }
            name => open.push(name),
        }
        elements.push(element);
    }
    assert!(open.is_empty(), "not closed: {open:?}");
    elements
}

fn element(tag: &str) -> Element<'_> {
    let (name, mut rest) = tag.split_once(' ').unwrap_or((tag, ""));
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "{tag:?}");
    let mut attributes = Vec::new();
    while !rest.is_empty() {
        let end = rest.find(['=', ' ']).unwrap_or(rest.len());
        let attribute = &rest[..end];
        let quoted = rest[end..].strip_prefix("=\"");
        let value = quoted.map_or("", |quoted| quoted.split('"').next().unwrap_or_default());
        attributes.push((attribute, value));
        rest = quoted.map_or(&rest[end..], |quoted| &quoted[value.len() + 1..]).trim_start();
    }
    let names: BTreeSet<_> = attributes.iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), attributes.len(), "an attribute twice: {tag:?}");
    Element { name, attributes }
}

fn page(runs: Vec<Run>) -> String {
    render(&Report { environment: sample::environment(), runs })
}

/// A well-formed page without a number that is none.
fn assert_sound(page: &str) {
    for element in elements(page) {
        for (name, value) in element.attributes {
            let numbers = ["NaN", "inf"].iter().all(|none| !value.contains(none));
            assert!(numbers || name == "content", "{name}={value:?}");
        }
    }
    assert!(!page.contains("NaN"), "in a text");
}

#[test]
fn every_element_is_closed_and_named_once() {
    let page = render(&sample::report());
    assert_sound(&page);
    let elements = elements(&page);
    let ids: Vec<_> = elements.iter().filter_map(|element| element.attribute("id")).collect();
    let distinct: BTreeSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), ids.len(), "an id twice");
    for element in &elements {
        let linked = element.attribute("href").map(|href| href.trim_start_matches('#'));
        for id in linked
            .into_iter()
            .chain(element.attribute("aria-labelledby").into_iter().flat_map(|ids| ids.split(' ')))
        {
            assert!(distinct.contains(&id), "{id} is on the page");
        }
    }
    let plots = elements.iter().filter(|element| element.attribute("role") == Some("img")).count();
    let tables = elements.iter().filter(|element| element.name == "table").count();
    assert!(plots >= 10 && tables >= plots + 10, "{plots} plots, each with its numbers, and {tables} tables");
}

#[test]
fn the_page_asks_for_nothing() {
    let page = render(&sample::report());
    for request in ["http:", "https:", "src=", "url(", "@import", "<script", "<link", "javascript:"] {
        assert!(!page.contains(request), "{request}");
    }
    assert!(page.contains("default-src 'none'"), "and may not");
}

#[test]
fn text_stays_text() {
    let hostile = "</style><script>alert(\"1\")</script>&amp;'";
    let mut runs = vec![sample::failing()];
    for run in &mut runs {
        run.name = hostile.to_owned();
        run.notes = vec![hostile.to_owned()];
        run.parameters.insert(hostile.to_owned(), hostile.to_owned());
        run.figures = vec![Figure { name: hostile.to_owned(), value: 1.0, unit: "<b>" }];
        run.series =
            vec![Series { name: hostile.to_owned(), unit: "<b>", points: vec![(0.0, 1.0), (1.0, 2.0)] }];
        run.distributions.push(sample::distribution(hostile, 10, 5.0, 1.0));
        run.verdict.named = vec![hostile.to_owned()];
    }
    let page = page(runs);
    assert_sound(&page);
    assert!(elements(&page).iter().all(|element| element.name != "script" && element.name != "b"));
    assert!(page.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&amp;amp;'"));
}

#[test]
fn nothing_run_and_nothing_measured_are_pages_too() {
    assert_sound(&page(vec![]));
    let bare = page(vec![Run { scenario: "queue", name: "bare".to_owned(), ..Run::default() }]);
    assert_sound(&bare);
    assert!(!bare.contains("<figure"));
}

#[test]
fn no_number_breaks_a_plot() {
    let extremes =
        [0.0, -0.0, -1.0, 1.0, 1e-300, 1e300, f64::MAX, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for value in extremes {
        let times = Distribution {
            p50_us: value,
            p999_us: value,
            max_us: value,
            curve: vec![(0.5, value), (value, 1.0), (1.0, value)],
            ..sample::distribution("times", 5_000, 10.0, 1.0)
        };
        let few = Distribution { count: 1, ..times.clone() };
        let series = |unit: &'static str| Series {
            name: unit.to_owned(),
            unit,
            points: vec![(0.0, value), (value, 1.0)],
        };
        let run = |offered: f64, times: Distribution| Run {
            scenario: "latency",
            name: units::rate(offered),
            unit: "messages",
            offered: Some(offered),
            achieved: Some(value),
            distributions: vec![times],
            figures: vec![Figure { name: "figure".to_owned(), value, unit: "bytes" }],
            series: vec![series("bytes"), series("messages/s")],
            ..Run::default()
        };
        let sweep = [10.0, 20.0, value, 40.0].map(|offered| run(offered, times.clone()));
        assert_sound(&page(sweep.into()));
        assert_sound(&page(vec![run(value, few)]));
    }
}

#[test]
fn one_point_is_seen() {
    let series = vec![Series { name: "rate".to_owned(), unit: "messages/s", points: vec![(1.0, 7.0)] }];
    let page = page(vec![Run { scenario: "queue", series, ..Run::default() }]);
    assert_sound(&page);
    assert!(elements(&page).iter().any(|element| element.attribute("class") == Some("mark")));
}

#[test]
fn plots_follow_from_the_data() {
    let titles = |scenario: &str| {
        let report = sample::report();
        let runs: Vec<&Run> = report.runs.iter().filter(|run| run.scenario == scenario).collect();
        chart::charts(&runs).iter().map(|chart| chart.plot.title.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        titles("queue"),
        ["Intended send to delivery: percentiles", "Messages a second over time", "Broker memory over time"]
    );
    assert_eq!(
        titles("latency"),
        [
            "Intended send to delivery by offered rate",
            "Achieved by offered rate",
            "Intended send to delivery: percentiles",
            "Intended send to confirm: percentiles",
        ]
    );
    assert_eq!(titles("failover"), ["Worker dies: cumulative distribution"]);
    assert_eq!(
        titles("soak"),
        [
            "Intended send to delivery: percentiles",
            "Published, delivered over time",
            "Broker memory over time"
        ]
    );
}

#[test]
fn the_style_knows_every_ink_and_toggle() {
    let inks = (0..21).map(Ink::Category).chain((0..RAMP).map(Ink::Ramp));
    let classes = inks.flat_map(|ink| ink.class().split(' ').map(str::to_owned).collect::<Vec<_>>());
    for class in classes.filter(|class| class != "d0") {
        assert!(STYLE.contains(&format!(".{class} ")), "{class}");
    }
    for index in 0..TOGGLES {
        assert!(STYLE.contains(&format!("figure:has(.t{index}:not(:checked)) .l{index}")), "{index}");
    }
    let colour = |name: &str| STYLE.matches(&format!("--{name}: #")).count();
    let named = (0..7).map(|index| format!("c{index}")).chain((0..RAMP).map(|step| format!("r{step}")));
    for name in named {
        assert_eq!(colour(&name), 2, "{name}, light and dark");
    }
}
