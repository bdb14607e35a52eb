//! One plot as inline SVG, with its legend. Colours are classes, so that the page's style decides on them.

use maud::{Markup, html};

use super::scale::Scale;
use super::stroke::{columns, number, path};

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 28.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 46.0;

/// What a character of a tick's name takes, roughly, and the gap to the next name.
const CHARACTER: f64 = 6.6;
const GAP: f64 = 10.0;

/// Lines of a plot that the reader can hide; the style has a rule for each.
pub const TOGGLES: usize = 16;

/// How many colours of each kind the style has.
const CATEGORIES: usize = 7;
pub const RAMP: usize = 9;

pub struct Plot {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// A line to compare with, and its name.
    pub reference: Option<(String, Vec<(f64, f64)>)>,
    pub shade: Option<Shade>,
}

/// A range of x that is to be read with care, and why.
pub struct Shade {
    pub from: f64,
    /// Infinite: to the end of the axis.
    pub to: f64,
    pub reason: String,
}

pub struct Axis {
    pub title: String,
    pub scale: Scale,
    /// Values and their names.
    pub ticks: Vec<(f64, String)>,
}

#[derive(Default)]
pub struct Line {
    pub name: String,
    pub ink: Ink,
    pub points: Vec<(f64, f64)>,
    pub marks: Vec<Mark>,
}

/// A point that tells more when it is pointed at.
pub struct Mark {
    pub at: (f64, f64),
    pub title: String,
    pub look: Look,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Full,
    Hollow,
    /// Seen only when pointed at.
    Hidden,
}

/// How a line is told from others.
#[derive(Clone, Copy)]
pub enum Ink {
    /// One of several of equal rank.
    Category(usize),
    /// One of a rising order, from 0 up to [`RAMP`].
    Ramp(usize),
}

impl Default for Ink {
    fn default() -> Self {
        Ink::Category(0)
    }
}

impl Ink {
    pub fn class(self) -> String {
        match self {
            Ink::Category(index) => format!("c{} d{}", index % CATEGORIES, index / CATEGORIES % 3),
            Ink::Ramp(step) => format!("r{} d0", step.min(RAMP - 1)),
        }
    }

    /// The outline of a mark, around the origin: the shape tells lines apart where colour does not.
    fn outline(self) -> &'static str {
        let (Ink::Category(index) | Ink::Ramp(index)) = self;
        match index % 4 {
            0 => "M-3.5 0A3.5 3.5 0 1 1 3.5 0A3.5 3.5 0 1 1-3.5 0Z",
            1 => "M-3.2-3.2H3.2V3.2H-3.2Z",
            2 => "M0-4.4L4.2 3.2H-4.2Z",
            _ => "M0-4.6L4.6 0L0 4.6L-4.6 0Z",
        }
    }
}

fn across(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
}

fn up(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

impl Plot {
    fn place(&self, (x, y): (f64, f64)) -> Option<(f64, f64)> {
        Some((across(self.x.scale.place(x)?), up(self.y.scale.place(y)?)))
    }

    fn places(&self, points: &[(f64, f64)]) -> Vec<Option<(f64, f64)>> {
        points.iter().map(|point| self.place(*point)).collect()
    }

    /// The drawing. `id` must be its own on the page.
    pub fn svg(&self, id: &str) -> Markup {
        let names: Vec<&str> = self.lines.iter().map(|line| line.name.as_str()).collect();
        html! {
            svg viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } role="img" aria-labelledby={ (id) "-title " (id) "-text" } {
                title id={ (id) "-title" } { (self.title) }
                desc id={ (id) "-text" } { (self.y.title) " by " (self.x.title) ", for " (names.join("; ")) }
                @if let Some(shading) = self.shading() { (shading) }
                (self.axes())
                @if let Some((_, points)) = &self.reference {
                    path class="line reference" d=(path(&self.places(points))) {}
                }
                @for (index, line) in self.lines.iter().enumerate() {
                    g class={ "l" (index) " " (line.ink.class()) } {
                        (self.curve(&line.points))
                        @for mark in &line.marks { (self.mark(mark, line.ink)) }
                    }
                }
            }
        }
    }

    fn axes(&self) -> Markup {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        html! {
            g class="axes" aria-hidden="true" {
                rect x=(LEFT) y=(TOP) width=(right - LEFT) height=(bottom - TOP) {}
                @for (y, name) in self.y_ticks() {
                    line x1=(LEFT) x2=(right) y1=(number(y)) y2=(number(y)) {}
                    text x=(LEFT - 8.0) y=(number(y + 4.0)) text-anchor="end" { (name) }
                }
                @for (x, name) in self.x_ticks() {
                    line x1=(number(x)) x2=(number(x)) y1=(TOP) y2=(bottom) {}
                    @if let Some(name) = name {
                        text x=(number(x)) y=(bottom + 18.0) text-anchor="middle" { (name) }
                    }
                }
                text class="axis" x="4" y="16" { (self.y.title) }
                text class="axis" x=(right) y=(HEIGHT - 8.0) text-anchor="end" { (self.x.title) }
            }
        }
    }

    fn y_ticks(&self) -> impl Iterator<Item = (f64, &str)> {
        let place = |value: f64| self.y.scale.place(value).map(up);
        self.y.ticks.iter().filter_map(move |(y, name)| Some((place(*y)?, name.as_str())))
    }

    /// Without the names that would run into the one before.
    fn x_ticks(&self) -> Vec<(f64, Option<&str>)> {
        let mut free = 0.0;
        let place = |value: f64| self.x.scale.place(value).map(across);
        let mut ticks = Vec::new();
        for (x, name) in self.x.ticks.iter().filter_map(|(x, name)| Some((place(*x)?, name))) {
            let half = name.chars().count() as f64 * CHARACTER / 2.0;
            let fits = x - half >= free;
            if fits {
                free = x + half + GAP;
            }
            ticks.push((x, fits.then_some(name.as_str())));
        }
        ticks
    }

    fn shading(&self) -> Option<Markup> {
        let Shade { from, to, reason } = self.shade.as_ref()?;
        let end = if to.is_infinite() { 1.0 } else { self.x.scale.place(*to)? };
        let (left, right) = (across(self.x.scale.place(*from)?), across(end));
        Some(html! {
            rect class="shade" x=(number(left)) y=(TOP) width=(number(right - left)) height=(HEIGHT - TOP - BOTTOM) {
                title { (reason) }
            }
        })
    }

    fn curve(&self, points: &[(f64, f64)]) -> Markup {
        let places = self.places(points);
        if !crowded(points) {
            return html! { path class="line" d=(path(&places)) {} };
        }
        let columns = columns(&places);
        let mean: Vec<_> = columns.iter().map(|column| Some((column.x, column.mean))).collect();
        let top = columns.iter().map(|column| Some((column.x, column.top)));
        let bottom = columns.iter().rev().map(|column| Some((column.x, column.bottom)));
        html! {
            path class="band" d=(path(&top.chain(bottom).collect::<Vec<_>>())) {}
            path class="line" d=(path(&mean)) {}
        }
    }

    fn mark(&self, mark: &Mark, ink: Ink) -> Markup {
        let Some((x, y)) = self.place(mark.at) else { return html! {} };
        let look = match mark.look {
            Look::Full => "mark",
            Look::Hollow => "mark hollow",
            Look::Hidden => "mark hidden",
        };
        html! {
            path class=(look) transform={ "translate(" (number(x)) " " (number(y)) ")" } d=(ink.outline()) {
                title { (mark.title) }
            }
        }
    }

    /// What the lines and signs mean; nothing where the title tells. Where there are several lines, each can be
    /// hidden.
    pub fn legend(&self) -> Markup {
        let several = self.lines.len() > 1;
        let hollow = self.lines.iter().flat_map(|line| &line.marks).any(|mark| mark.look == Look::Hollow);
        html! {
            ul class="legend" {
                @if several || self.reference.is_some() {
                    @for (index, line) in self.lines.iter().enumerate() {
                        li { label {
                            @if several && index < TOGGLES {
                                input type="checkbox" checked autocomplete="off" class={ "t" (index) };
                            }
                            (swatch(line))
                            (line.name)
                        } }
                    }
                }
                @if let Some((name, _)) = &self.reference {
                    (sign(html! { path class="line reference" d="M1 6H27" {} }, name))
                }
                @if hollow {
                    (sign(
                        html! { path class="mark hollow" transform="translate(14 6)" d=(Ink::default().outline()) {} },
                        "hollow: the load test was saturated",
                    ))
                }
                @if self.lines.iter().any(|line| crowded(&line.points)) {
                    (sign(html! { path class="band" d="M0 0H28V12H0Z" {} }, "band: least to most, line: mean"))
                }
                @if let Some(shade) = &self.shade {
                    (sign(html! { rect class="shade" width="28" height="12" {} }, &shade.reason))
                }
            }
        }
    }
}

fn sign(drawing: Markup, meaning: &str) -> Markup {
    html! {
        li {
            svg class="swatch d0 c6" viewBox="0 0 28 12" aria-hidden="true" { (drawing) }
            (meaning)
        }
    }
}

fn swatch(line: &Line) -> Markup {
    let marked = line.marks.iter().any(|mark| mark.look != Look::Hidden);
    html! {
        svg class={ "swatch " (line.ink.class()) } viewBox="0 0 28 12" aria-hidden="true" {
            path class="line" d="M1 6H27" {}
            @if marked { path class="mark" transform="translate(14 6)" d=(line.ink.outline()) {} }
        }
    }
}

/// More points than the width can show.
fn crowded(points: &[(f64, f64)]) -> bool {
    points.len() as f64 > WIDTH * 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        let axis = |low, high| Axis {
            title: "axis".to_owned(),
            scale: Scale::Linear { low, high },
            ticks: vec![(low, "low".to_owned()), (high, "high".to_owned())],
        };
        let line = Line { name: "line".to_owned(), points, ..Line::default() };
        Plot {
            title: "plot".to_owned(),
            x: axis(0.0, 1e5),
            y: axis(0.0, 1.0),
            lines: vec![line],
            reference: None,
            shade: None,
        }
    }

    #[test]
    fn a_gap_begins_a_new_stroke() {
        let points = vec![(0.0, 0.0), (2e4, 1.0), (4e4, f64::NAN), (6e4, 1.0), (8e4, 0.5)];
        let drawn = plot(vec![]).curve(&points).into_string();
        assert_eq!(drawn, r#"<path class="line" d="M62.0 284.0L156.0 30.0M344.0 30.0L438.0 157.0"></path>"#);
    }

    #[test]
    fn names_do_not_run_into_each_other() {
        let mut plot = plot(vec![]);
        plot.x.ticks = (0..100).map(|index| (f64::from(index) * 1e3, format!("{index} messages"))).collect();
        let named: Vec<f64> = plot.x_ticks().iter().filter_map(|(x, name)| name.map(|_| *x)).collect();
        assert!(named.len() > 3 && named.windows(2).all(|pair| pair[1] - pair[0] > 70.0), "{named:?}");
    }

    #[test]
    fn each_line_of_a_plot_has_its_own_look() {
        let looks: std::collections::BTreeSet<_> =
            (0..CATEGORIES * 3).map(|index| Ink::Category(index).class()).collect();
        assert_eq!(looks.len(), CATEGORIES * 3);
    }
}
