//! Small charts as SVG: bars, for counts and sizes. No script, no address, no text of a document that is not escaped.

use maud::{Markup, html};

/// One bar.
pub(crate) struct Bar {
    /// What it is.
    pub(crate) label: String,
    /// How much there is of it.
    pub(crate) value: usize,
    /// The class of the style sheet that colours it.
    pub(crate) kind: &'static str,
}

const HEIGHT: usize = 22;
const WIDTH: usize = 560;
const LABEL: usize = 170;
const SPACE: usize = WIDTH - LABEL - 70;

/// Bars below each other, the longest as wide as there is room.
pub(crate) fn bars(title: &str, bars: &[Bar]) -> Markup {
    let largest = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let height = bars.len() * HEIGHT + 4;
    html! {
        figure {
            figcaption { (title) }
            svg role="img" viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) {
                title { (title) }
                @for (index, bar) in bars.iter().enumerate() {
                    @let y = index * HEIGHT;
                    @let width = (bar.value * SPACE).div_ceil(largest);
                    text x=(LABEL - 8) y=(y + 15) text-anchor="end" { (bar.label) }
                    rect class=(bar.kind) x=(LABEL) y=(y + 3) width=(width.max(1)) height="15" rx="2" {}
                    text x=(LABEL + width + 6) y=(y + 15) { (bar.value) }
                }
            }
        }
    }
}
