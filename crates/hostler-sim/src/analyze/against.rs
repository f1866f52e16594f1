//! Two workloads side by side: what every figure that both allow says of one and of the other.

use super::Analysis;
use super::figure::Fact;
use crate::report::data::Format;
use crate::report::format;
use crate::report::html::escape;

/// Facts that a figure has of both; those by name may be many.
const FACTS_MAX: usize = 40;

/// A fact of both workloads.
struct Pair<'a> {
    words: &'a str,
    before: &'a Fact,
    now: &'a Fact,
}

/// By figure: its title and its facts.
fn pairs<'a>(now: &'a Analysis, before: &'a Analysis) -> Vec<(&'static str, Vec<Pair<'a>>)> {
    let mut figures = Vec::new();
    for figure in &now.figures {
        let Some(other) = before.figure(figure.key) else { continue };
        let pair = |fact: &'a Fact| {
            let same = other.facts.iter().find(|other| other.key == fact.key)?;
            let known = fact.value.is_finite() && same.value.is_finite();
            known.then_some(Pair { words: &fact.words, before: same, now: fact })
        };
        let facts: Vec<Pair<'_>> = figure.facts.iter().filter_map(pair).take(FACTS_MAX).collect();
        if !facts.is_empty() {
            figures.push((figure.title, facts));
        }
    }
    figures
}

impl Pair<'_> {
    /// Before, now, and the change in words.
    fn texts(&self) -> [String; 3] {
        let (before, now) = (self.before.value, self.now.value);
        let values = format::column(&[Some(before), Some(now)], self.now.format);
        let change = match self.now.format {
            _ if before == now => "=".to_owned(),
            Format::Percent => format!("{:+.1} points", (now - before) * 100.0),
            _ if before == 0.0 => String::new(),
            Format::Duration | Format::Count | Format::Number => {
                format!("{:+.0} %", (now / before - 1.0) * 100.0)
            }
        };
        let [before, now] = [values[0].clone(), values[1].clone()];
        [before, now, change]
    }
}

/// Both workloads for a terminal.
pub(super) fn text(now: &Analysis, before: &Analysis) -> String {
    let mut lines =
        vec![format!("before: {}", before.subtitle), format!("now:    {}", now.subtitle)];
    for (title, facts) in pairs(now, before) {
        lines.extend([String::new(), title.to_owned()]);
        for pair in facts {
            let [before, now, change] = pair.texts();
            lines.push(format!("  {:<58} {before:>12} {now:>12} {change:>12}", pair.words));
        }
    }
    let printable = |line: &String| line.chars().filter(|letter| !letter.is_control()).collect();
    let lines: Vec<String> = lines.iter().map(printable).collect();
    lines.join("\n") + "\n"
}

/// Both workloads as a section of the page.
pub(super) fn section(now: &Analysis, before: &Analysis) -> String {
    let mut rows = String::new();
    for (title, facts) in pairs(now, before) {
        for pair in facts {
            let [before, now, change] = pair.texts().map(|text| escape(&text));
            let words = escape(&format!("{title}: {}", pair.words));
            rows.push_str(&format!(
                "<tr><th scope=\"row\">{words}</th><td>{before}</td><td>{now}</td><td>{change}</td>\
                 </tr>\n"
            ));
        }
    }
    format!(
        "<section aria-labelledby=\"against\">\n<h2 id=\"against\">Before and now</h2>\n\
         <p class=\"quiet\">Before: {}. Now: {}.</p>\n<div class=\"scroll\" tabindex=\"0\" \
         role=\"region\" aria-labelledby=\"against\">\n<table>\n<thead><tr>\
         <th scope=\"col\" class=\"text\">Figure</th><th scope=\"col\">before</th>\
         <th scope=\"col\">now</th><th scope=\"col\">change</th></tr></thead>\n<tbody>\n{rows}\
         </tbody>\n</table>\n</div>\n</section>\n",
        escape(&before.subtitle),
        escape(&now.subtitle)
    )
}
